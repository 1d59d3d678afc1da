"""The digests of all images, asked of their registries."""
