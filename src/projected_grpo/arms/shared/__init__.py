"""What several arms have in common."""
