"""What a run leaves on disk: its folder, bound before the first step, and documents that say whose they are."""
