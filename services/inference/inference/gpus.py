"""Known GPUs and their memory in GiB, as stated by the makers; a plan does not need the GPU itself."""

GPU_GIB: dict[str, float] = {
    "t4": 16,
    "l4": 24,
    "a10g": 24,
    "rtx4090": 24,
    "l40s": 48,
    "a100-40": 40,
    "a100-80": 80,
    "h100": 80,
    "h200": 141,
    "b200": 180,
    "mi300x": 192,
}
