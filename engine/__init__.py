"""The engine: tokens in, tokens out, over one base model and many adapters."""

import os

# Read by the OpenMP runtime when torch loads it, hence here, before anything imports torch. Threads that spin while
# they wait make a step ten times slower as soon as another process wants a core, and one always does.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
