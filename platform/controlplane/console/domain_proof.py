"""A domain is whose website says so: one file, one line that only its tenant was told."""

from typing import Final

from controlplane.fetcher import Fetcher, FetchFailed, FetchRefused
from tenants.identity import SignInDomain

PROOF_PATH: Final = "/.well-known/veneer-sign-in.txt"
MAX_BYTES: Final = 16 * 1024


def proof_line(domain: SignInDomain) -> str:
    return f"veneer-sign-in={domain.token}"


def missing_proof(fetcher: Fetcher, domain: SignInDomain) -> str | None:
    """None where the line is there; else what is in the way, and the remedy."""
    url = f"https://{domain.name}{PROOF_PATH}"
    remedy = f"{url} must answer with a line {proof_line(domain)}"
    try:
        with fetcher.open(url) as answer:
            status, content = answer.status, answer.read(MAX_BYTES)
    except (FetchRefused, FetchFailed) as exc:
        return f"{remedy}: {exc}."
    if status != 200:
        return f"{remedy}: it answers {status}."
    lines = content.decode("utf-8", "replace").split()
    return None if proof_line(domain) in lines else f"{remedy}: it is not there."
