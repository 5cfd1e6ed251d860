"""What a method must beat: one prompt, asked once."""
