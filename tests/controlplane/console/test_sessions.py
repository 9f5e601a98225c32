"""Sessions are rows of ours: listed and ended by whoever opened them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.sessions.backends.base import UpdateError
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.console.devices import device_words
from controlplane.console.tasks import sweep_sessions
from tenants.credentials import Session
from tenants.models import AuditRow
from tenants.sessions import SEEN_EVERY, SessionStore, note_seen
from tests.controlplane.conftest import PASSWORD, Api, Cast, signed_in
from tests.controlplane.console.test_secrets import every_table

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Safari/604.1"


def at(cast: Cast, agent: str, address: str) -> Api:
    """The owner, signed in with a browser from an address."""
    api = Api(headers={"User-Agent": agent})
    api.client.defaults["REMOTE_ADDR"] = address
    assert api.post("session", {"email": cast.owner.email, "password": PASSWORD})[0] == 200
    return api


def test_the_owner_sees_each_by_device_address_and_time_and_which_is_this(cast: Cast) -> None:
    at(cast, SAFARI, "198.51.100.7")
    signed_in(cast.stranger)
    here = at(cast, FIREFOX, "203.0.113.5")
    status, body = here.get("account/sessions")
    rows = [(row["device"], row["address"], row["is_this"]) for row in body["data"]]
    expected = [("Firefox on Linux", "203.0.113.5", True), ("Safari on iPhone", "198.51.100.7", False)]
    assert (status, rows) == (200, expected)
    assert all(row["seen_at"] and row["created_at"] for row in body["data"])


def test_one_is_ended_and_the_rest_stay(cast: Cast) -> None:
    phone, here = at(cast, SAFARI, "198.51.100.7"), at(cast, FIREFOX, "203.0.113.5")
    other = next(row["id"] for row in here.get("account/sessions")[1]["data"] if not row["is_this"])
    assert here.delete(f"account/sessions/{other}") == (204, None)
    assert (phone.get("session")[0], here.get("session")[0]) == (401, 200)
    assert here.delete(f"account/sessions/{other}")[0] == 404
    assert AuditRow.objects.get(action="person.session_end").target == other


def test_all_others_are_ended_at_once(cast: Cast) -> None:
    others = [at(cast, SAFARI, "198.51.100.7") for _ in range(2)]
    stranger, here = signed_in(cast.stranger), at(cast, FIREFOX, "203.0.113.5")
    assert here.post("account/sessions/end-others") == (200, {"ended": 2})
    assert [api.get("session")[0] for api in (*others, here, stranger)] == [401, 401, 200, 200]


def test_this_one_can_be_ended_too(cast: Cast) -> None:
    here = at(cast, FIREFOX, "203.0.113.5")
    [this] = here.get("account/sessions")[1]["data"]
    assert here.delete(f"account/sessions/{this['id']}")[0] == 204
    assert here.get("session")[0] == 401
    assert not Session.objects.filter(user=cast.owner).exists()


def test_a_strangers_session_is_missing(cast: Cast, stranger: Api) -> None:
    owner = at(cast, FIREFOX, "203.0.113.5")
    [this] = owner.get("account/sessions")[1]["data"]
    foreign = stranger.delete(f"account/sessions/{this['id']}")
    missing = stranger.delete("account/sessions/ses_none")
    assert (foreign[0], foreign[1]["error"]["code"]) == (missing[0], missing[1]["error"]["code"]) == (404, "not_found")
    assert owner.get("session")[0] == 200
    assert this["id"] not in str(stranger.get("account/sessions"))


def test_the_list_is_cut_into_pages(cast: Cast) -> None:
    for _ in range(3):
        here = at(cast, FIREFOX, "203.0.113.5")
    seen, cursor = set(), ""
    while cursor is not None:
        body = here.get(f"account/sessions?limit=1&cursor={cursor}" if cursor else "account/sessions?limit=1")[1]
        seen |= {row["id"] for row in body["data"]}
        cursor = body["next"]
    assert len(seen) == 3


def test_being_seen_costs_one_write_a_minute(cast: Cast) -> None:
    here = at(cast, FIREFOX, "203.0.113.5")
    with CaptureQueriesContext(connections["default"]) as few:
        for _ in range(5):
            here.get("session")
    writes = [query["sql"] for query in few.captured_queries if query["sql"].startswith("UPDATE")]
    assert writes == []
    long_ago = timezone.now() - SEEN_EVERY
    Session.objects.update(seen_at=long_ago)
    here.get("session", REMOTE_ADDR="192.0.2.1")
    row = Session.objects.get(user=cast.owner)
    assert row.seen_at is not None
    assert row.seen_at > long_ago
    assert row.address == "192.0.2.1"


def test_what_a_browser_says_of_itself_is_cut(cast: Cast) -> None:
    here = at(cast, "x" * 5000, "203.0.113.5")
    [row] = here.get("account/sessions")[1]["data"]
    assert row["device"] == "x" * 40


def test_a_copy_of_the_table_opens_nothing(cast: Cast) -> None:
    here = at(cast, FIREFOX, "203.0.113.5")
    assert here.client.cookies["sessionid"].value not in every_table()
    thief = Api()
    thief.client.cookies["sessionid"] = Session.objects.get(user=cast.owner).key_digest
    assert thief.get("session")[0] == 401


def test_an_expired_session_is_refused_and_swept(cast: Cast) -> None:
    here, other = at(cast, FIREFOX, "203.0.113.5"), at(cast, SAFARI, "203.0.113.6")
    Session.objects.filter(address="203.0.113.5").update(expires_at=timezone.now())
    assert here.get("session")[0] == 401
    sweep_sessions()
    assert list(Session.objects.values_list("address", flat=True)) == ["203.0.113.6"]
    assert other.get("session")[0] == 200


def test_a_session_that_ended_meanwhile_does_not_come_back(cast: Cast) -> None:
    api = signed_in(cast.owner)
    store = SessionStore(api.client.cookies["sessionid"].value)
    store["late"] = 1
    Session.objects.all().delete()
    with pytest.raises(UpdateError):
        store.save()
    assert not Session.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_many_that_see_at_once_one_writes(cast: Cast) -> None:
    key = signed_in(cast.owner).client.cookies["sessionid"].value
    Session.objects.update(seen_at=timezone.now() - timedelta(hours=1))

    def see(number: int) -> None:
        try:
            store = SessionStore(key)
            store.load()
            note_seen(store, address=f"10.0.0.{number}", user_agent="x")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(see, range(4)))
    row = Session.objects.get()
    first = row.seen_at
    assert first is not None
    store = SessionStore(key)
    store.load()
    note_seen(store, address="10.9.9.9", user_agent="x")
    row.refresh_from_db()
    assert (row.seen_at, row.address != "10.9.9.9") == (first, True)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("", "Unknown device"),
        ("curl/8.9.1", "curl"),
        (FIREFOX, "Firefox on Linux"),
        (SAFARI, "Safari on iPhone"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36", "Chrome on Windows"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/130.0 Safari/537.36 Edg/130.0", "Edge on Windows"),
        ("Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 14) AppleWebKit/605 Version/17 Safari/605", "Safari on macOS"),
    ],
)
def test_what_people_call_a_browser(agent: str, words: str) -> None:
    assert device_words(agent) == words
