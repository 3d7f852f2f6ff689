import sys

from tests.testbeds.globus.cli import main

sys.exit(main())
