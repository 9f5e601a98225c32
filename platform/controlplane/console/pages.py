"""The console's pages: one built index.html for every address the browser's router knows; and the health check."""

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

NOT_BUILT = (
    "The console has not been built yet: run `make up`, or `npm ci && npm run build` in frontend/, then reload. "
    "The API answers meanwhile.\n"
)


@require_safe
@ensure_csrf_cookie
def page(request: HttpRequest) -> HttpResponse:
    """The built page, never cached: it names the assets, whose own names change with their content."""
    try:
        html = (settings.FRONTEND_DIR / "index.html").read_bytes()
    except FileNotFoundError:
        return HttpResponse(NOT_BUILT, status=503, content_type="text/plain; charset=utf-8")
    return HttpResponse(html, headers={"Cache-Control": "no-store"})


@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """200 where requests can be served, 503 where the database is away."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "the database does not answer"}, status=503)
    return JsonResponse({"status": "ok"})
