"""Starts I Hate Money, a shared budget, with one project in it, on the port that is told."""

import datetime
import os
import sys
from pathlib import Path

from ihatemoney.models import Bill, Person, Project, db
from ihatemoney.run import create_app
from werkzeug.security import generate_password_hash
from werkzeug.serving import run_simple

SETTINGS = """SQLALCHEMY_DATABASE_URI = "sqlite:///{}/money.db"
SECRET_KEY = "tests"
SESSION_COOKIE_SECURE = False
MAIL_SUPPRESS_SEND = True
"""
BILLS = (("Train tickets", 120.0, 0, 2), ("Groceries", 45.5, 1, 4), ("Museum", 36.0, 2, 9), ("Dinner", 88.0, 1, 11))

if __name__ == "__main__":
    here = Path.cwd()
    (here / "settings.cfg").write_text(SETTINGS.format(here))
    os.environ["IHATEMONEY_SETTINGS_FILE_PATH"] = str(here / "settings.cfg")
    app = create_app()
    with app.app_context():
        db.create_all()
        trip = Project(
            id="trip", name="Trip", contact_email="a@example.org", password=generate_password_hash("trip-pass"),
            default_currency="XXX",
        )  # fmt: skip
        people = [Person(name=name, project=trip, weight=1) for name in ("Ann", "Bert", "Cora")]
        db.session.add_all([trip, *people])
        db.session.commit()
        for what, amount, payer, day in BILLS:
            bill = Bill(
                amount=amount, date=datetime.date(2026, 10, day), external_link="", original_currency="XXX",
                owers=people, payer_id=people[payer].id, project_default_currency="XXX", what=what,
            )  # fmt: skip
            db.session.add(bill)
        db.session.commit()
    run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=True)
