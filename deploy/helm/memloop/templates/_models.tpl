{{/* URLs of the engines outside the release, as a JSON list. */}}
{{- define "memloop.outsideEngines" -}}
{{- $urls := list -}}
{{- range .Values.models }}{{ $urls = concat $urls (.engineUrls | default list) }}{{ end -}}
{{ toJson (ternary $urls .Values.engine.urls (not (empty .Values.models))) }}
{{- end }}

{{/* The roles' ids, as JSON. A wrong one would stop every pod at its start. */}}
{{- define "memloop.roles" -}}
{{- $ids := list -}}
{{- range .Values.models }}{{ $ids = append $ids .id }}{{ end -}}
{{- if ne (len $ids) (len (uniq $ids)) }}{{ fail (printf "models: an id stands there twice: %s" (join ", " $ids)) }}{{ end -}}
{{- $roles := dict -}}
{{- range $role, $id := .Values.roles -}}
{{- if and $id (not (has $id $ids)) }}{{ fail (printf "roles.%s: models has no id %q, only %s" $role $id (join ", " $ids)) }}{{ end -}}
{{- if and (not $id) (gt (len $ids) 1) (ne $role "judge") }}{{ fail (printf "roles.%s: name one of %s" $role (join ", " $ids)) }}{{ end -}}
{{- if $id }}{{ $_ := set $roles $role $id }}{{ end -}}
{{- end -}}
{{ toJson $roles }}
{{- end }}

{{/* The entry of inference.models that serves a model, over the defaults, as JSON. root, entry */}}
{{- define "memloop.ownEngine" -}}
{{- $names := list -}}
{{- range .root.Values.inference.models }}{{ $names = append $names .name }}{{ end -}}
{{- if not (has .entry.inference $names) }}{{ fail (printf "models: %s: inference.models has no name %q, only %s" .entry.id .entry.inference (join ", " $names)) }}{{ end -}}
{{- range .root.Values.inference.models -}}
{{- if eq .name $.entry.inference }}{{ include "memloop.model" (dict "root" $.root "entry" .) }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The engine of a model that a promotion names, over the defaults, as JSON. root, id, as */}}
{{- define "memloop.promoted" -}}
{{- $found := list -}}
{{- range .root.Values.models }}{{ if and (eq .id $.id) .inference }}{{ $found = append $found . }}{{ end }}{{ end -}}
{{- if not $found }}{{ fail (printf "promotion.%s: models has no id %q with an engine of the release (inference)" .as .id) }}{{ end -}}
{{ include "memloop.ownEngine" (dict "root" .root "entry" (first $found)) }}
{{- end }}

{{/* One table of the models file, as JSON. root, entry, number */}}
{{- define "memloop.modelTable" -}}
{{- $entry := .entry -}}
{{- $table := dict "dialect" ($entry.dialect | default "auto") "profile" $entry.profile "engine_model" $entry.engineModel -}}
{{- $_ := set $table "window_tokens" $entry.windowTokens -}}
{{- $_ := set $table "owned_by" $entry.ownedBy -}}
{{- $_ := set $table "created" $entry.created -}}
{{- if $entry.profileConfigMap }}{{ $_ := set $table "profile" (printf "/etc/memloop/profiles/%d" .number) }}{{ end -}}
{{- if $entry.inference -}}
{{- $own := include "memloop.ownEngine" . | fromJson -}}
{{- $host := include "memloop.podsHost" (dict "root" .root "component" (printf "inference-%s" $own.name)) -}}
{{- $_ := set $table "engine_url" (printf "%s://%s:7803/v1" (include "memloop.scheme" .root) $host) -}}
{{- $_ := set $table "inference_url" (printf "%s://%s:7802" (include "memloop.scheme" .root) $host) -}}
{{- $_ := set $table "api_key_env" "MEMLOOP_ENGINE_API_KEY" -}}
{{- $_ := set $table "engine_model" ($entry.engineModel | default (include "memloop.servedName" $own)) -}}
{{- else -}}
{{- $_ := set $table "engine_url" (first $entry.engineUrls) -}}
{{- $_ := set $table "engine_fallback_urls" (rest $entry.engineUrls) -}}
{{- if $entry.keySecret }}{{ $_ := set $table "api_key_env" (printf "KEY_OF_MODEL_%d" .number) }}{{ end -}}
{{- end -}}
{{ toJson $table }}
{{- end }}

{{/* models.toml; empty without `models`. JSON's strings and lists of strings are TOML's too. */}}
{{- define "memloop.modelsFile" -}}
{{- if .Values.models -}}
[roles]
{{- range $role, $id := include "memloop.roles" . | fromJson }}
{{ $role }} = {{ toJson $id }}
{{- end }}
{{- range $number, $entry := .Values.models }}

[models.{{ toJson $entry.id }}]
{{- range $key, $value := include "memloop.modelTable" (dict "root" $ "entry" $entry "number" $number) | fromJson }}
{{- if kindIs "float64" $value }}
{{ $key }} = {{ int64 $value }}
{{- else if $value }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
{{- end }}

{{/* Variables with the keys of engines outside the release. */}}
{{- define "memloop.modelSecrets" -}}
{{- range $number, $entry := .Values.models }}
{{- with $entry.keySecret }}
- name: KEY_OF_MODEL_{{ $number }}
  valueFrom: { secretKeyRef: { name: {{ .name | quote }}, key: {{ .key | quote }} } }
{{- end }}
{{- end }}
{{- end }}

{{/* Mounts and volumes of the models file and of its profiles. */}}
{{- define "memloop.modelMounts" -}}
{{- if .Values.models }}
- { name: models, mountPath: /etc/memloop/models, readOnly: true }
{{- end }}
{{- range $number, $entry := .Values.models }}
{{- if $entry.profileConfigMap }}
- { name: profile-{{ $number }}, mountPath: /etc/memloop/profiles/{{ $number }}, readOnly: true }
{{- end }}
{{- end }}
{{- end }}

{{- define "memloop.modelVolumes" -}}
{{- if .Values.models }}
- { name: models, configMap: { name: {{ include "memloop.name" (dict "root" . "component" "models") }} } }
{{- end }}
{{- range $number, $entry := .Values.models }}
{{- with $entry.profileConfigMap }}
- { name: profile-{{ $number }}, configMap: { name: {{ . | quote }} } }
{{- end }}
{{- end }}
{{- end }}
