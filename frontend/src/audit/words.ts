/** What each deed is called; one that is new to this console shows its own name. */
const DEEDS: Record<string, string> = {
  "adapter.create": "created an adapter",
  "adapter.delete": "deleted an adapter",
  "adapter.pin": "pinned an adapter to the device",
  "adapter.unpin": "let the device forget an adapter",
  "agreement.set": "agreed terms with the tenant",
  "alias.roll_back": "put back the version that served before",
  "alias.set": "changed which version serves",
  "batch.cancel": "cancelled a batch",
  "batch.create": "started a batch",
  "billing_profile.change": "changed the billing address",
  "discrepancy.resolve": "resolved a discrepancy",
  "engine.drain": "drained an engine",
  "engine.restart": "restarted an engine",
  "engine.resume": "let an engine take requests again",
  "evaluation.cancel": "cancelled an evaluation",
  "evaluation.delete": "deleted an evaluation",
  "evaluation.start": "started an evaluation",
  "file.delete": "deleted a file",
  "grant.create": "shared an adapter",
  "grant.give": "gave credit",
  "grant.give_back": "gave back a shared adapter",
  "grant.given_back": "got a shared adapter back",
  "grant.revoke": "ended a share",
  "invoice.entry": "corrected an invoice",
  "key.change": "changed a key",
  "key.issue": "issued a key",
  "key.revoke": "revoked a key",
  "key.rotate": "rotated a key",
  "limits.set": "set limits",
  "markup.set": "set the surcharge of a share",
  "member.change": "changed a role",
  "member.invite": "invited somebody",
  "member.join": "joined",
  "member.remove": "removed a member",
  "member.uninvite": "withdrew an invitation",
  "payment.reverse": "reversed a payment",
  "payment.start": "started a payment",
  "period.close": "closed a period",
  "person.activate": "let somebody in again",
  "person.deactivate": "shut somebody out",
  "person.factors_forget": "took somebody's second factors away",
  "person.passkey_add": "added a passkey",
  "person.passkey_remove": "removed a passkey",
  "person.password_change": "changed their password",
  "person.password_reset": "chose a new password",
  "person.recovery_code": "signed in with a recovery code",
  "person.recovery_codes": "made new recovery codes",
  "person.reset_link": "gave out a link to a new password",
  "person.session_end": "ended a session",
  "person.sessions_end": "ended their other sessions",
  "person.totp_off": "turned codes off",
  "person.totp_on": "turned codes on",
  "price.set": "set a price",
  "prompt_set.create": "created a prompt set",
  "prompt_set.delete": "deleted a prompt set",
  "single_sign_on.domain_add": "named a domain of single sign-on",
  "single_sign_on.domain_confirm": "confirmed a domain of single sign-on",
  "single_sign_on.domain_remove": "removed a domain of single sign-on",
  "single_sign_on.link": "linked their company account",
  "single_sign_on.remove": "removed single sign-on",
  "single_sign_on.set": "set up single sign-on",
  "single_sign_on.unlink": "unlinked their company account",
  "tenant.create": "created the tenant",
  "tenant.on_behalf_end": "stopped acting for the tenant",
  "tenant.on_behalf_start": "began to act for the tenant",
  "tenant.reactivate": "reactivated the tenant",
  "tenant.second_factor": "chose whether members need a second factor",
  "tenant.suspend": "suspended the tenant",
  "version.delete": "deleted a version",
  "version.expire": "gave up an upload",
  "version.finish": "finished an upload",
  "version.ready": "found a version ready",
  "version.rejected": "rejected a version",
  "version.start": "started an upload",
  "webhook.change": "changed a webhook",
  "webhook.create": "added a webhook",
  "webhook.delete": "deleted a webhook",
  "webhook.rotate": "rotated a webhook's secret",
};

export function deedWords(action: string): string {
  return DEEDS[action] ?? action;
}

export const KINDS = [
  { value: "", label: "All deeds" },
  { value: "adapter.", label: "Adapters" },
  { value: "version.", label: "Versions" },
  { value: "alias.", label: "Serving" },
  { value: "key.", label: "Keys" },
  { value: "member.", label: "Members" },
  { value: "limits.", label: "Limits" },
];

/** `name: value` pairs, in the order that the server wrote them. */
export function detailWords(details: object): string {
  return Object.entries(details)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${valueWords(value)}`)
    .join(", ");
}

/** "0.012876000000", "0E-12": as the database writes decimals. */
const DECIMAL = /^-?\d+(\.\d+)?(E[-+]?\d+)?$/;

function valueWords(value: unknown): string {
  if (value === null) return "not set";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(valueWords).join(" and ") || "none";
  if (typeof value === "object") return `(${detailWords(value)})`;
  const text = String(value);
  return /[.E]/.test(text) && DECIMAL.test(text) ? plainDecimal(text) : text;
}

function plainDecimal(text: string): string {
  if (text.includes("E")) return String(Number(text));
  return text.replace(/\.?0+$/, "");
}
