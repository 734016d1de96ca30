"""What heads do in a chat, segment by segment."""
