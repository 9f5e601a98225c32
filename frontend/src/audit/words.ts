/** What each deed is called; one that is new to this console shows its own name. */
const DEEDS: Record<string, string> = {
  "adapter.create": "created an adapter",
  "adapter.delete": "deleted an adapter",
  "alias.set": "changed which version serves",
  "engine.drain": "drained an engine",
  "engine.restart": "restarted an engine",
  "engine.resume": "let an engine take requests again",
  "grant.give": "gave credit",
  "key.change": "changed a key",
  "key.issue": "issued a key",
  "key.revoke": "revoked a key",
  "key.rotate": "rotated a key",
  "limits.set": "set limits",
  "member.change": "changed a role",
  "member.invite": "invited somebody",
  "member.join": "joined",
  "member.remove": "removed a member",
  "member.uninvite": "withdrew an invitation",
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
  "tenant.on_behalf_end": "stopped acting for the tenant",
  "tenant.on_behalf_start": "began to act for the tenant",
  "tenant.reactivate": "reactivated the tenant",
  "tenant.second_factor": "chose whether members need a second factor",
  "tenant.suspend": "suspended the tenant",
  "tenant.create": "created the tenant",
  "version.expire": "gave up an upload",
  "version.finish": "finished an upload",
  "version.ready": "found a version ready",
  "version.rejected": "rejected a version",
  "version.start": "started an upload",
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
export function detailWords(details: Record<string, unknown>): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}
