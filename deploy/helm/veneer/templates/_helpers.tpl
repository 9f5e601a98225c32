{{- define "veneer.name" -}}
{{- printf "%s-veneer" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "veneer.selector" -}}
app.kubernetes.io/name: veneer
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "veneer.labels" -}}
{{ include "veneer.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "veneer.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "veneer.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* What every container of the pod has. */}}
{{- define "veneer.container" -}}
{{ include "veneer.image" . }}
volumeMounts:
  - {name: home, mountPath: /data}
  - {name: scratch, mountPath: /tmp}
  - {name: model, mountPath: {{ .Values.model.mountPath | quote }}, readOnly: true}
{{- end -}}

{{/* The settings of all processes but the engine, which needs none. */}}
{{- define "veneer.settings" -}}
- {name: VENEER_HOME, value: /data}
- {name: VENEER_ENGINE_URL, value: "ipc:///data/run/engine.sock"}
- {name: VENEER_MODEL, value: {{ .Values.model.path | quote }}}
- {name: VENEER_MAX_RANK, value: {{ .Values.engine.maxRank | quote }}}
- {name: VENEER_MAX_SAVED_BYTES, value: {{ printf "%.0f" (float64 .Values.engine.maxSavedBytes) | quote }}}
- {name: VENEER_CONSOLE_URL, value: {{ .Values.consoleUrl | quote }}}
- {name: VENEER_DOOR_URL, value: {{ .Values.doorUrl | quote }}}
- {name: VENEER_ALLOWED_HOSTS, value: {{ concat (list "localhost") .Values.allowedHosts | join "," | quote }}}
- {name: VENEER_TRUSTED_ORIGINS, value: {{ join "," .Values.trustedOrigins | quote }}}
- {name: VENEER_TRUSTED_PROXIES, value: {{ .Values.trustedProxies | quote }}}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}

{{/* Of those that act as the owner of the tables. */}}
{{- define "veneer.ownersSecrets" -}}
- secretRef: {name: {{ .Values.secretName | quote }}}
{{- with .Values.migrationSecretName }}
- secretRef: {name: {{ . | quote }}}
{{- end }}
{{- end -}}

{{- define "veneer.celery" -}}
command: [python, -m, celery, -A, controlplane, worker, --pool, threads, --concurrency, "2", --without-mingle, --without-gossip]
{{- end -}}
