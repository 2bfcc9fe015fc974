"""The command by which a served application is reset: asks its ``Serving``, whose address is the one argument."""

import sys
import urllib.error
import urllib.request

_RESET_S = 300.0

if __name__ == "__main__":
    try:
        urllib.request.urlopen(urllib.request.Request(sys.argv[1], method="POST"), timeout=_RESET_S).close()
    except urllib.error.HTTPError as error:
        sys.exit(error.read().decode())
