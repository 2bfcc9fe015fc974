"""The learner: critics, shaped advantages, policy losses and training; no Ray in here."""
