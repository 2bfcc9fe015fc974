"""A trained outcome model as a judge: what it reads, what is on the disk of it, and who asks it."""
