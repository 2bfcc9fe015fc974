"""Starts the example of Piccolo Admin, a Vue application over a database of films, on the port that is told."""

import asyncio
import sys

from hypercorn.asyncio import serve
from hypercorn.config import Config
from piccolo_admin.example.app import APP, create_schema, populate_data, set_engine

if __name__ == "__main__":
    set_engine("sqlite")
    create_schema(persist=False)
    populate_data(engine="sqlite")
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[1]}"]
    asyncio.run(serve(APP, config))
