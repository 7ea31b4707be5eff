"""A small domain in tau2's shape, of this project's own: whole dialogues without tau2's source."""
