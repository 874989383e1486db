"""What manela reaches, measured: `python -m benchmarks` runs all, `python -m benchmarks speed memory` some."""
