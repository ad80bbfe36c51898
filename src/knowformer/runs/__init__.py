"""Run folders: what training leaves behind and everything else loads."""
