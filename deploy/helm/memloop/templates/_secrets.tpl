{{/* A variable from the release's Secret. */}}
{{- define "memloop.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ include "memloop.secretName" .root }}
      key: {{ .key | default .name }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{- end }}

{{/* Refuses a revision of a key that no pod reads. */}}
{{- define "memloop.checkRevisions" -}}
{{- $keys := list "MEMLOOP_API_KEYS" "MEMLOOP_STORE_KEY" "MEMLOOP_ENGINE_API_KEY" "MEMLOOP_WEBHOOK_SECRET" "REDIS_PASSWORD" "QDRANT_API_KEY" "QDRANT_READ_KEY" -}}
{{- $keys = append $keys .Values.redis.urlSecret.key -}}
{{- range .Values.inference.models }}{{ $keys = append $keys (include "memloop.model" (dict "root" $ "entry" .) | fromJson).hubTokenSecret.key }}{{ end -}}
{{- range .Values.models }}{{ with .keySecret }}{{ $keys = append $keys .key }}{{ end }}{{ end -}}
{{- range $key, $_ := .Values.secrets.revisions -}}
{{- if not (has $key $keys) }}{{ fail (printf "secrets.revisions: no pod reads a key %s, only %s" $key (uniq $keys | sortAlpha | join ", ")) }}{{ end -}}
{{- end -}}
{{- end }}

{{/* Variables of each process from Secrets. */}}
{{- define "memloop.gatewaySecrets" -}}
{{ include "memloop.secretEnv" (dict "root" . "name" "MEMLOOP_API_KEYS") }}
{{ include "memloop.workerSecrets" . }}
{{- end }}

{{- define "memloop.workerSecrets" -}}
{{ include "memloop.secretEnv" (dict "root" . "name" "MEMLOOP_STORE_KEY") }}
{{ include "memloop.secretEnv" (dict "root" . "name" "MEMLOOP_ENGINE_API_KEY" "optional" (empty .Values.inference.models)) }}
{{ include "memloop.secretEnv" (dict "root" . "name" "MEMLOOP_WEBHOOK_SECRET" "optional" true) }}
{{- include "memloop.modelSecrets" . }}
{{- end }}

{{- define "memloop.storeSecrets" -}}
{{ include "memloop.secretEnv" (dict "root" . "name" "MEMLOOP_STORE_KEY") }}
{{ include "memloop.qdrantKey" . }}
{{- end }}

{{- define "memloop.qdrantKey" -}}
{{ include "memloop.secretEnv" (dict "root" . "name" "QDRANT_API_KEY" "optional" (not .Values.qdrant.enabled)) }}
{{- end }}

{{- define "memloop.inferenceSecrets" -}}
{{ include "memloop.secretEnv" (dict "root" .root "name" "MEMLOOP_ENGINE_API_KEY") }}
{{- with .model.hubTokenSecret }}
{{- if .name }}
- name: HF_TOKEN
  valueFrom: { secretKeyRef: { name: {{ .name | quote }}, key: {{ .key | quote }} } }
{{- end }}
{{- end }}
{{- end }}

{{- define "memloop.redisSecrets" -}}
{{ include "memloop.secretEnv" (dict "root" . "name" "REDISCLI_AUTH" "key" "REDIS_PASSWORD") }}
{{- end }}

{{- define "memloop.qdrantEnv" -}}
{{ include "memloop.secretEnv" (dict "root" . "name" "QDRANT__SERVICE__API_KEY" "key" "QDRANT_API_KEY") }}
{{ include "memloop.secretEnv" (dict "root" . "name" "QDRANT__SERVICE__READ_ONLY_API_KEY" "key" "QDRANT_READ_KEY" "optional" true) }}
- { name: QDRANT__STORAGE__STORAGE_PATH, value: /data/storage }
- { name: QDRANT__STORAGE__SNAPSHOTS_PATH, value: /data/snapshots }
- { name: QDRANT__TELEMETRY_DISABLED, value: "true" }
- { name: QDRANT_INIT_FILE_PATH, value: /tmp/.qdrant-initialized }
{{- end }}
