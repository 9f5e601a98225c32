"""`python -m setup.npm run test`: npm in frontend/, with whichever Node the console was built with."""

import os
import subprocess
import sys

from setup.console import find_node
from setup.paths import FRONTEND

if __name__ == "__main__":
    node = find_node()
    sys.exit(
        subprocess.run([*node.npm, *sys.argv[1:]], cwd=FRONTEND, env=os.environ | node.env, check=False).returncode
    )
