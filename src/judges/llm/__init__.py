"""Language models as judges: what they are asked, who asks them, and what it costs."""
