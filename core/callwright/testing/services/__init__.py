"""Components that stand between us and somebody else: teachers, users, frameworks, logs; live services kept out."""
