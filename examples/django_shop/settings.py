"""The settings of the project. Its database has the tables of the shop and the queue."""

import os
import secrets

from psycopg.conninfo import conninfo_to_dict

_options = conninfo_to_dict(os.environ["LONNYMQ_DSN"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _options["dbname"],
        "USER": _options["user"],
        "PASSWORD": _options.get("password", ""),
        "HOST": _options.get("host", ""),
        "PORT": _options.get("port", ""),
        # A worker then keeps its connections from one attempt to the next.
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }
}
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "lonnymq.django",
    "examples.django_shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "examples.django_shop.urls"
STATIC_URL = "static/"
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
# A real project has one that survives a restart.
SECRET_KEY = os.environ.get("SECRET_KEY") or secrets.token_hex()
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
