import type { OwnRole, Role } from "../api/types";

export const ROLES: { value: Role; label: string; description: string }[] = [
  { value: "owner", label: "Owner", description: "everything, also other owners" },
  { value: "admin", label: "Admin", description: "everything but owners" },
  { value: "developer", label: "Developer", description: "adapters, keys, playground, usage" },
  { value: "billing", label: "Billing", description: "usage, statements, balance" },
  { value: "viewer", label: "Viewer", description: "adapters and usage, read only" },
];

/** Nobody grants above their own role; the server decides, this keeps dead choices off the page. */
export function grantable(own: OwnRole): typeof ROLES {
  return own === "owner" ? ROLES : ROLES.filter(({ value }) => value !== "owner");
}

export function mayChange(own: OwnRole, theirs: Role): boolean {
  return own === "owner" || (own === "admin" && theirs !== "owner");
}
