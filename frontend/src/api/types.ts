import type { components } from "./schema";

/**
 * The console's names for the shapes of the management API, which `npm run schema` generates.
 * Amounts are exact decimals in strings: format them, never add them as floats.
 */
type Shapes = components["schemas"];

export type Session = Shapes["SessionShape"];
export type Role = Shapes["RoleEnum"];
/** As a member's role, or as an operator who acts for the tenant. */
export type OwnRole = Role | "operator";
export type Membership = Omit<Shapes["Membership"], "role"> & { role: OwnRole };

export type ApiKey = Shapes["KeyShape"];
export type IssuedKey = Shapes["IssuedKeyShape"];
export type Scope = Shapes["ScopesEnum"];

export type Member = Shapes["MemberShape"];
export type Invitation = Shapes["InvitationShape"];
export type SentInvitation = Shapes["SentInvitationShape"];
export type InvitationToYou = Shapes["InvitationToYou"];
export type SingleSignOn = Shapes["SingleSignOnShape"];
export type SingleSignOnChoice = Shapes["SetSingleSignOnRequest"];
export type JoiningRole = Shapes["DefaultRoleEnum"];
export type SignInDomain = Shapes["DomainShape"];
export type Company = Shapes["CompanyShape"];
export type Factors = Shapes["FactorsShape"];
export type Passkey = Shapes["PasskeyShape"];
export type NewTotp = Shapes["NewTotp"];
export type OpenSession = Shapes["OpenSessionShape"];
export type Person = Shapes["PersonShape"];
export type Balance = Shapes["Balance"];
export type Invoice = Shapes["InvoiceShape"];
export type FullInvoice = Shapes["FullInvoiceShape"];
export type Discrepancy = Shapes["DiscrepancyShape"];
export type AuditRow = Shapes["AuditShape"];

export type Adapter = Shapes["AdapterShape"];
export type Version = Shapes["VersionShape"];
export type VersionFile = Shapes["VersionFileShape"];
export type CheckReport = Shapes["ReportShape"];
export type Problem = Shapes["ProblemShape"];
export type Split = Shapes["SplitShape"];
export type AliasChoice = Shapes["SetAliasRequest"];
/** `[start, end]`, half-open. */
export type ByteRange = number[];

export type Usage = Shapes["UsageShape"];
export type UsageNumbers = Shapes["NumbersShape"];
export type UsagePoint = Shapes["PointShape"];

export type Tenant = Shapes["TenantShape"];
export type Limits = Shapes["TenantLimitsShape"];
export type Level = Shapes["LevelShape"];
export type LimitUse = Shapes["UseShape"];
export type NearLimit = Shapes["NearShape"];
export type Price = Shapes["PriceShape"];

export type Fleet = Shapes["FleetShape"];
export type Replica = Shapes["ReplicaShape"];
export type BaseModel = Shapes["BaseModelShape"];
export type ModelSize = Shapes["ModelSizeShape"];
export type Health = Shapes["HealthShape"];
export type Jobs = Shapes["JobsShape"];
export type Incoming = Shapes["IncomingShape"];
export type Alert = Shapes["AlertShape"];
export type OperatorBatch = Shapes["OperatorBatchShape"];
export type Batch = Shapes["Batch"];
export type FullBatch = Shapes["FullBatch"];
export type BatchLine = Shapes["BatchLine"];
export type Evaluation = Shapes["Evaluation"];
export type EvaluationRow = Shapes["EvaluationRow"];
export type EvaluationCase = Shapes["EvaluationCase"];
export type EvaluationAnswer = Shapes["EvaluationAnswer"];
export type EvaluationTally = Shapes["EvaluationTally"];
export type EvaluationStart = Shapes["StartEvaluationRequest"];
export type PromptSetRow = Shapes["PromptSetRowShape"];
export type NewPromptSet = Shapes["CreatePromptSetRequest"];
export type EvaluationPrompt = Shapes["PromptShapeRequest"];
export type Margin = Shapes["MarginShape"];
export type PricePreview = Shapes["PricePreviewShape"];
export type UsageGroup = Shapes["GroupShape"];
export type AmountParts = Shapes["PartsShape"];
export type Generation = Shapes["GenerationShape"];
export type FullGeneration = Shapes["FullGenerationShape"];
export type Latency = Shapes["LatencyShape"];
export type Webhook = Shapes["WebhookShape"];
export type WebhookWithSecret = Shapes["WebhookWithSecretShape"];
export type Delivery = Shapes["DeliveryShape"];
export type Attempt = Shapes["AttemptShape"];
export type NewWebhook = Shapes["CreateWebhookRequest"];
export type AlertKind = NonNullable<NewWebhook["kinds"]>[number];
export type SharedAdapter = Shapes["SharedAdapterShape"];
export type AdapterGrant = Shapes["AdapterGrantShape"];
export type Place = Shapes["ResidencyShape"]["place"];
export type TrafficSide = Shapes["TrafficSide"];
export type LevelLimits = Shapes["LimitsShape"];
