"""Memory items: adding, resolving, editing, listing, moving and erasing them."""
