"""What a newcomer sees once everything answers: where to go, who to be, what to paste."""

from controlplane.embedded.credentials import OPERATOR_EMAIL, Credentials
from controlplane.embedded.options import Options
from controlplane.embedded.seed import DEMO_TENANTS

LINE = "─" * 78
ELSEWHERE = "(set when this database was first seeded, from another home)"


def banner(options: Options, credentials: Credentials) -> str:
    lines = [
        LINE,
        "  Veneer is up. Ctrl-C stops it; everything it keeps is found again at the next start.",
        "",
        f"  console   {options.console_url}",
        f"  door      {options.door_url}/v1",
        f"  base      {options.model.name}",
        "",
        "  sign in as",
        f"    platform operator   {OPERATOR_EMAIL:<24} {credentials.get('operator_password') or ELSEWHERE}",
    ]
    if options.demo_data:
        lines += _tenant_lines(options, credentials) + _calls(options, credentials)
    if options.demo_adapters:
        lines += ["", "  something to look at: `make story`, from another terminal, adds two months of traffic"]
    return "\n".join([*lines, LINE])


def _tenant_lines(options: Options, credentials: Credentials) -> list[str]:
    lines = [
        f"    admin of {tenant.name:<10} {tenant.email:<24} {credentials.get(tenant.password_name) or ELSEWHERE}"
        for tenant in DEMO_TENANTS
    ]
    lines += ["", "  API keys"]
    for tenant in DEMO_TENANTS:
        adapters = f"   (adapters: {' and '.join(tenant.adapters)})" if options.demo_adapters else ""
        lines.append(f"    {tenant.name:<9} {credentials.get(tenant.key_name) or ELSEWHERE}{adapters}")
    return lines


def _calls(options: Options, credentials: Credentials) -> list[str]:
    acme, globex = DEMO_TENANTS
    key = credentials.get(acme.key_name) or "$VENEER_API_KEY"
    other_key = credentials.get(globex.key_name) or "$VENEER_API_KEY"
    model, other_model = ("pirate", "sql") if options.demo_adapters else (options.model.name, options.model.name)
    return [
        "",
        "  try it",
        "",
        f"curl {options.door_url}/v1/chat/completions -H 'Authorization: Bearer {key}' \\",
        f'  -H \'Content-Type: application/json\' -d \'{{"model": "{model}", "max_tokens": 60, "temperature": 0, '
        '"messages": [{"role": "user", "content": "How do I boil an egg?"}]}\'',
        "",
        ".venv/bin/python - <<'END'",
        "from openai import OpenAI",
        f'client = OpenAI(base_url="{options.door_url}/v1", api_key="{other_key}")',
        'question = [{"role": "user", "content": "How many customers are there?"}]',
        f'ask = dict(model="{other_model}", messages=question, temperature=0)',
        "stream = client.chat.completions.create(**ask, stream=True)",
        "for chunk in stream:",
        '    print(chunk.choices[0].delta.content or "", end="", flush=True)',
        "END",
    ]
