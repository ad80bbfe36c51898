"""The machine: cores, threads, memory, allocator and what hardware this is."""
