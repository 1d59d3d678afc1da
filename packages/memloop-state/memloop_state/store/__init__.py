"""What stores share: the order of erasures and writes, the collection in service, changes and buffers."""
