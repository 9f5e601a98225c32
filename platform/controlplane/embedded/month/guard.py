"""Where the story may be told: it adds to the books of whoever owns the database, and cannot be taken back."""

from django.conf import settings

from controlplane.embedded.month.cast import COMPANIES
from controlplane.embedded.options import DEMO_MODEL
from controlplane.embedded.problems import StackProblem
from controlplane.embedded.seed import DEMO_TENANTS
from tenants.models import Tenant, User

_SHOWN = 5


def check_may_tell(*, beside_others: bool) -> User:
    """The operator in whose name it is told. Raises StackProblem, before anything is written."""
    ours = {company.slug for company in COMPANIES}
    known = set(Tenant.objects.values_list("slug", flat=True))
    if told := sorted(ours & known):
        raise StackProblem(
            f"{', '.join(told)}: here already, so the story was told on this database before (or broke off half-way). "
            "It is told once: take a fresh home, for example VENEER_HOME=/tmp/story make up."
        )
    others = sorted(known - {tenant.slug for tenant in DEMO_TENANTS})
    if others and not beside_others:
        names = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
        raise StackProblem(
            f"this database has tenants of its own ({names}), and the story's invoices take numbers of their series, "
            "its usage counts in the same margin. Use a fresh home (VENEER_HOME=/tmp/story make up), or add "
            "--beside-others."
        )
    if settings.MODEL_DIR.name != DEMO_MODEL:
        raise StackProblem(
            f"the base model here is {settings.MODEL_DIR.name}, the story's adapters were trained on {DEMO_MODEL}: "
            "start the stack with that one."
        )
    operator = User.objects.filter(is_operator=True, is_active=True).order_by("created_at").first()
    if operator is None:
        raise StackProblem("there is no operator in whose name the story could be told: `make up` makes one.")
    return operator
