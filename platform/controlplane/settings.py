"""Every knob of the control plane, read once. `docs/operator.md` lists what an operator may set."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from controlplane.currency import checked_currency
from controlplane.env import ROOT, env_bool, env_int, env_str, home, run_file
from controlplane.isolation import BEYOND_ITS_OWN as BEYOND_ITS_OWN
from tenants.roles import STARTUP_OPTIONS, reset

HOME: Path = home()
_stack = run_file(HOME)


def _setting(name: str, default: str = "") -> str:
    """The environment first, then the local stack that runs in HOME, then the default."""
    return env_str(name, str(_stack.get(name, default)))


def _owner_url() -> str:
    """The environment's, or that of the stack whose database it is; else whoever logs in owns the tables, too."""
    known = _stack.get("VENEER_MIGRATION_DATABASE_URL") if _stack.get("DATABASE_URL") == DATABASE_URL else None
    return env_str("VENEER_MIGRATION_DATABASE_URL", str(known or DATABASE_URL))


def _login(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    return {
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or 5432),
    }


# --- where things are ---------------------------------------------------------------------------------------------
DATABASE_URL = _setting("DATABASE_URL", "postgresql://veneer@127.0.0.1:5432/veneer")
VALKEY_URL = _setting("VALKEY_URL", "redis://127.0.0.1:6379/0")
ENGINE_URL = _setting("VENEER_ENGINE_URL", f"ipc://{HOME}/run/engine.sock")
DOOR_URL = _setting("VENEER_DOOR_URL", "http://127.0.0.1:8001")
CONSOLE_URL = _setting("VENEER_CONSOLE_URL", "http://127.0.0.1:8000")
MODEL_DIR = Path(_setting("VENEER_MODEL", str(HOME / "models" / "SmolLM2-135M-Instruct")))
OBJECTS_DIR = HOME / "objects"  # published adapter versions (obstore LocalStore)
STAGING_DIR = HOME / "staging"  # uploads under way

# --- secrets ------------------------------------------------------------------------------------------------------
SECRET_KEY = _setting("VENEER_SECRET_KEY", "insecure-outside-a-stack")
# API keys are HMACed with the pepper of their version, so a new pepper does not kill old keys: "1:hex,2:hex".
KEY_PEPPERS = {
    int(version): bytes.fromhex(value)
    for version, _, value in (p.partition(":") for p in _setting("VENEER_KEY_PEPPERS", f"1:{'00' * 32}").split(","))
}

# Reverse proxies in front of the door and the console, each of which appends its caller to X-Forwarded-For.
TRUSTED_PROXIES = env_int("VENEER_TRUSTED_PROXIES", 0)

# --- limits -------------------------------------------------------------------------------------------------------
MAX_RANK = env_int("VENEER_MAX_RANK", 64)
MAX_ADAPTER_BYTES = env_int("VENEER_MAX_ADAPTER_BYTES", 512 * 1024 * 1024)
MAX_SAVED_BYTES = env_int("VENEER_MAX_SAVED_BYTES", 256_000_000)
CHECK_MEMORY_BYTES = env_int("VENEER_CHECK_MEMORY_BYTES", 2 * 1024**3)  # of the process that checks an upload
CHECK_SECONDS = env_int("VENEER_CHECK_SECONDS", 120)  # its processor time; its clock may show four times that
MAX_ADAPTERS_PER_TENANT = env_int("VENEER_MAX_ADAPTERS_PER_TENANT", 1000)
MAX_STORED_BYTES_PER_TENANT = env_int("VENEER_MAX_STORED_BYTES_PER_TENANT", 50 * 1024**3)  # all versions
REJECTED_KEPT_DAYS = env_int("VENEER_REJECTED_KEPT_DAYS", 7)
EVALUATIONS_KEPT_DAYS = env_int("VENEER_EVALUATIONS_KEPT_DAYS", 90)
MAX_PINS_PER_TENANT = env_int("VENEER_MAX_PINS_PER_TENANT", 2)
MAX_PART_BYTES = env_int("VENEER_MAX_PART_BYTES", 64 * 1024 * 1024)
MAX_BODY_BYTES = env_int("VENEER_MAX_BODY_BYTES", 4 * 1024 * 1024)
# Networks that adapters may be fetched from though they are not public ("10.1.0.0/16"): mirrors of the operator's.
FETCH_ALLOWED_NETWORKS = env_str("VENEER_FETCH_ALLOWED_NETWORKS", "")
HUB_URLS = [u.rstrip("/") for u in env_str("VENEER_HUB_URLS", "https://huggingface.co").split(",")]  # tried in order
S3_URL = env_str("VENEER_IMPORT_S3_URL", "")  # of an S3-compatible store; none: Amazon's
S3_REGION = env_str("VENEER_IMPORT_S3_REGION", "us-east-1")
# Buckets that every tenant may import from with these credentials; all others are read anonymously.
S3_BUCKETS = [b for b in env_str("VENEER_IMPORT_S3_BUCKETS", "").split(",") if b]
S3_KEY_ID, S3_SECRET = env_str("VENEER_IMPORT_S3_KEY_ID", ""), env_str("VENEER_IMPORT_S3_SECRET", "")
DEFAULT_MAX_TOKENS = env_int("VENEER_DEFAULT_MAX_TOKENS", 512)
HOLD_TTL_SECONDS = env_int("VENEER_HOLD_TTL_SECONDS", 90)
MAX_BATCH_FILE_BYTES = env_int("VENEER_MAX_BATCH_FILE_BYTES", 100 * 1024 * 1024)
MAX_BATCH_LINES = env_int("VENEER_MAX_BATCH_LINES", 50_000)
MAX_FILE_BYTES_PER_TENANT = env_int("VENEER_MAX_FILE_BYTES_PER_TENANT", 5 * 1024**3)
MAX_OPEN_BATCHES_PER_TENANT = env_int("VENEER_MAX_OPEN_BATCHES_PER_TENANT", 50)
BATCH_LINES = env_int("VENEER_BATCH_LINES", 16)  # of batches, run at once
BATCH_LINES_PER_TENANT = env_int("VENEER_BATCH_LINES_PER_TENANT", 4)
AUTH_CACHE_SECONDS = 0.8  # a revoked key is refused within a second, everywhere
# What every amount is in, here and everywhere (ISO 4217).
CURRENCY = checked_currency(_setting("VENEER_CURRENCY", "USD"))
# What an hour of this device costs the operator: turns device-seconds into cost.
DEVICE_COST_PER_HOUR = _setting("VENEER_DEVICE_COST_PER_HOUR", "0.40")
# And a kilowatt-hour, where the device counts its energy; empty: the hour's price has it.
ENERGY_COST_PER_KWH = _setting("VENEER_ENERGY_COST_PER_KWH", "")
# What the owner of a shared adapter may ask on top, per million tokens, and the operator's percentage of it.
MAX_MARKUP = env_str("VENEER_MAX_MARKUP", "10")
MARKUP_SHARE_PERCENT = env_int("VENEER_MARKUP_SHARE_PERCENT", 20)
# A billing period closes by itself this long after its end: what ran at midnight has come into the books by then.
CLOSE_DELAY_SECONDS = env_int("VENEER_CLOSE_DELAY_SECONDS", 3600)
# Who invoices. In the address "\\n" is a new line. A TrueType font is needed for names outside Latin-1.
SELLER_NAME = env_str("VENEER_SELLER_NAME", "Veneer")
SELLER_ADDRESS = env_str("VENEER_SELLER_ADDRESS", "").replace("\\n", "\n")
SELLER_TAX_ID = env_str("VENEER_SELLER_TAX_ID", "")
INVOICE_FONT = env_str("VENEER_INVOICE_FONT", "")
# Payments by card and bank through Stripe; without a key there are none. The secret is that of its webhook.
STRIPE_KEY = env_str("VENEER_STRIPE_KEY", "")
STRIPE_WEBHOOK_SECRET = env_str("VENEER_STRIPE_WEBHOOK_SECRET", "")
STRIPE_API_URL = env_str("VENEER_STRIPE_API_URL", "https://api.stripe.com")

# --- Django -------------------------------------------------------------------------------------------------------
DEBUG = env_bool("VENEER_DEBUG", False)
ALLOWED_HOSTS = env_str("VENEER_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1],testserver").split(",")
CSRF_TRUSTED_ORIGINS = [o for o in env_str("VENEER_TRUSTED_ORIGINS", "").split(",") if o]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "tenants",
    "controlplane.adapters",
    "controlplane.quotas",
    "controlplane.billing",
    "controlplane.inference",
    "controlplane.batches",
    "controlplane.console",
    "controlplane.embedded",
]
MIDDLEWARE = [
    "controlplane.console.middleware.RequestIdMiddleware",  # first: every other's log lines carry the id
    "controlplane.console.middleware.NoScopeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "controlplane.console.security.SecurityHeadersMiddleware",
    "controlplane.console.assets.AssetsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "controlplane.urls"
ASGI_APPLICATION = "controlplane.asgi.application"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {}}]
DATABASES = {
    "default": {
        "ENGINE": "tenants.postgres",
        "NAME": unquote(urlsplit(DATABASE_URL).path.lstrip("/")),
        **_login(DATABASE_URL),
        # Connections are pooled: a new scram connection costs 5 ms.
        "OPTIONS": {"options": STARTUP_OPTIONS, "pool": {"min_size": 0, "max_size": 8, "timeout": 10, "reset": reset}},
        # 0.1 ms, so that a database that was started anew costs nobody an answer.
        "CONN_HEALTH_CHECKS": True,
        "OWNER": _login(_owner_url()),  # who migrates
    }
}
MIGRATION_MODULES = {
    app: f"migrations.{app}" for app in ("tenants", "adapters", "quotas", "billing", "inference", "batches")
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "tenants.User"
PASSWORD_HASHERS = [  # the first for new passwords; one of another is hashed anew when its owner signs in
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"}]
SESSION_ENGINE = "tenants.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = CONSOLE_URL.startswith("https://")
CSRF_FAILURE_VIEW = "controlplane.errors.csrf_failure"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False
STATIC_URL = "/static/"
FRONTEND_DIR = ROOT / "frontend" / "dist"
WHITENOISE_ROOT = FRONTEND_DIR  # its index.html has a view of its own: it sets a cookie, and says when it is missing
WHITENOISE_USE_FINDERS = True  # the API browser's files are served from where they are installed
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/assets/"  # vite names these by their content
FILE_UPLOAD_HANDLERS: list[str] = []  # uploads are raw bodies, read as streams
APPEND_SLASH = False
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [VALKEY_URL]},
    }
}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["tenants.api_auth.KeyAuthentication", "tenants.api_auth.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "controlplane.rest_schema.ManagementSchema",
    "EXCEPTION_HANDLER": "controlplane.errors.drf_exception_handler",
    "UNAUTHENTICATED_USER": None,
    "COERCE_DECIMAL_TO_STRING": True,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Veneer management API",
    "DESCRIPTION": "Tenants, adapters, keys, limits and money. docs/api.md describes the OpenAI-compatible door.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    # Where several shapes have a field of one name, each with choices of its own.
    "ENUM_NAME_OVERRIDES": {
        "InvoiceStateEnum": ["open", "overdue", "paid"],
        "RoleEnum": "tenants.models.Role.choices",
        "AlertKindEnum": "controlplane.billing.alert_models.AlertKind.choices",
        "PartStateEnum": ["up", "degraded", "down"],
        "VersionStateEnum": ["uploading", "checking", "ready", "rejected"],
        "ReplicaStateEnum": ["serving", "draining", "away"],
        "EvaluationStateEnum": ["running", "done", "cancelled", "failed"],
        "PaymentStateEnum": "controlplane.billing.payment_models.PaymentState.choices",
        "PaymentKindEnum": "controlplane.billing.payment_models.PaymentKind.choices",
        "InvoiceEntryKindEnum": "controlplane.billing.invoice_models.EntryKind.choices",
    },
}

# --- mail: smtp://user:password@host:587?tls=1; none: links are handed over in the console ---------------------------
_mail = urlsplit(env_str("VENEER_EMAIL_URL", ""))
EMAIL_HOST = _mail.hostname or ""
EMAIL_PORT = _mail.port or 25
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_mail.username or ""), unquote(_mail.password or "")
EMAIL_USE_TLS = "tls=1" in _mail.query
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env_str("VENEER_EMAIL_FROM", "veneer@localhost")

# --- Celery -------------------------------------------------------------------------------------------------------
CELERY_BROKER_URL = VALKEY_URL
CELERY_TIMEZONE = "UTC"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True  # a killed worker's task runs again; every task is idempotent
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 120}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# A slow download or evaluation keeps no check waiting: they have workers of their own.
CELERY_TASK_ROUTES = {
    "adapters.fetch_version": {"queue": "imports"},
    "inference.run_evaluation": {"queue": "imports"},
    "batches.work": {"queue": "batches"},
}
CELERY_BEAT_SCHEDULE = {
    "ingest-journal": {"task": "inference.ingest_journal", "schedule": 2.0},
    "sync-pins": {"task": "inference.sync_pins", "schedule": 5.0},
    "expire-holds": {"task": "quotas.expire_holds", "schedule": 10.0},
    "resume-imports": {"task": "adapters.resume_imports", "schedule": 15.0},
    "resume-checks": {"task": "adapters.resume_checks", "schedule": 15.0},
    "resume-evaluations": {"task": "adapters.resume_evaluations", "schedule": 15.0},
    "close-periods": {"task": "billing.close_periods", "schedule": 300.0},
    "find-alerts": {"task": "inference.find_alerts", "schedule": 30.0},
    "mail-alerts": {"task": "billing.mail_alerts", "schedule": 30.0},
    "send-webhooks": {"task": "billing.send_webhooks", "schedule": 5.0},
    "roll-up-usage": {"task": "billing.roll_up", "schedule": 60.0},
    "reconcile-hours": {"task": "billing.reconcile", "schedule": 1800.0},
    "find-unusual-spend": {"task": "billing.find_unusual_spend", "schedule": 300.0},
    "expire-credit": {"task": "inference.expire_credit", "schedule": 60.0},
    "mail-notices": {"task": "console.mail_notices", "schedule": 15.0},
    "sweep-sessions": {"task": "console.sweep_sessions", "schedule": 3600.0},
    "sweep-answers": {"task": "console.sweep_answers", "schedule": 3600.0},
    # What is sent while a worker is at it is dropped: it looks itself.
    "work-off-batches": {"task": "batches.work", "schedule": 5.0, "options": {"expires": 5}},
    "sweep-batches": {"task": "batches.sweep", "schedule": 60.0},
    "sweep-adapters": {"task": "adapters.sweep", "schedule": 60.0},
}

# --- logs ---------------------------------------------------------------------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "controlplane.logs.RequestIdFilter"}},
    "formatters": {
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(request_id)s %(message)s",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["request_id"]}},
    "root": {"handlers": ["stderr"], "level": env_str("VENEER_LOG_LEVEL", "INFO")},
    "loggers": {name: {"level": "WARNING"} for name in ("httpx", "httpx2", "uvicorn.access", "fido2", "stripe")},
}
