# PGHOST, PGPORT and PGUSER are read by the driver itself.

import os

SECRET_KEY = "not used here"
INSTALLED_APPS = ["items"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("PGDATABASE", "postgres"),
    }
}
USE_TZ = True
