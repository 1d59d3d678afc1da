{{/* MEMLOOP_REDIS_URL as a variable: in the release, from a Secret, or as given. And the copies of a write. */}}
{{- define "memloop.redisEnv" -}}
{{- $redis := .Values.redis -}}
- name: MEMLOOP_REDIS_ACK_COPIES
  value: {{ int64 $redis.ackCopies | toString | quote }}
{{ if $redis.enabled -}}
{{ include "memloop.secretEnv" (dict "root" . "name" "REDIS_PASSWORD") }}
- name: MEMLOOP_REDIS_URL
  value: redis://:$(REDIS_PASSWORD)@{{ include "memloop.name" (dict "root" . "component" "redis") }}:6379/0
{{- else if $redis.urlSecret.name -}}
- name: MEMLOOP_REDIS_URL
  valueFrom: { secretKeyRef: { name: {{ $redis.urlSecret.name | quote }}, key: {{ $redis.urlSecret.key | quote }} } }
{{- else -}}
- name: MEMLOOP_REDIS_URL
  value: {{ required "redis.url is needed, or redis.urlSecret.name, or redis.enabled" $redis.url | quote }}
{{- end -}}
{{- end }}

{{/* QDRANT_URL. What its server could not do is refused here, as the store would refuse it at its start. */}}
{{- define "memloop.qdrantUrl" -}}
{{- $qdrant := .Values.qdrant -}}
{{- if gt (int $qdrant.writeConsistency) (int $qdrant.copies) }}{{ fail "qdrant.writeConsistency is more than qdrant.copies: no write could be acknowledged" }}{{ end -}}
{{- if and $qdrant.grpcPort (contains "," $qdrant.url) }}{{ fail "qdrant.grpcPort needs a qdrant.url with one address" }}{{ end -}}
{{- if and $qdrant.enabled (or $qdrant.grpcPort $qdrant.shards (gt (int $qdrant.copies) 1)) }}{{ fail "qdrant.enabled runs one Qdrant, reached over REST: leave grpcPort, shards and copies" }}{{ end -}}
{{- if .Values.qdrant.enabled -}}
http://{{ include "memloop.name" (dict "root" . "component" "qdrant") }}:6333
{{- else -}}
{{ required "qdrant.url is needed, or qdrant.enabled" .Values.qdrant.url }}
{{- end -}}
{{- end }}

{{/* The entry merged over the defaults, as JSON. */}}
{{- define "memloop.model" -}}
{{- $model := mergeOverwrite (deepCopy .root.Values.inference.defaults) (deepCopy .entry) -}}
{{- if and (not $model.gpus) (ne $model.engine "vllm-cpu") }}{{ fail (printf "inference.models: %s: %s needs a GPU: with gpus 0 the engine is vllm-cpu" $model.name $model.engine) }}{{ end -}}
{{- if mod $model.gpus $model.dataParallelSize }}{{ fail (printf "inference.models: %s: gpus (%v) must be a multiple of dataParallelSize (%v)" $model.name $model.gpus $model.dataParallelSize) }}{{ end -}}
{{- if and (contains "/mig-" $model.gpuResource) (gt (int $model.gpus) 1) }}{{ fail (printf "inference.models: %s: gpus (%v) of %s: a process sees one slice of a GPU alone: set gpus to 1, and replicas" $model.name $model.gpus $model.gpuResource) }}{{ end -}}
{{- if and (eq (int $model.maxSurge) 0) (eq (int $model.maxUnavailable) 0) }}{{ fail (printf "inference.models: %s: maxSurge and maxUnavailable are both 0: nothing could be replaced" $model.name) }}{{ end -}}
{{ toJson $model }}
{{- end }}

{{- define "memloop.servedName" -}}
{{ .servedName | default (base .model) }}
{{- end }}

{{/* The id of the loops' model; empty if the engine's first model is used. */}}
{{- define "memloop.loopModel" -}}
{{- if .Values.engine.model -}}
{{ .Values.engine.model }}
{{- else if .Values.inference.models -}}
{{ include "memloop.servedName" (include "memloop.model" (dict "root" . "entry" (first .Values.inference.models)) | fromJson) }}
{{- end -}}
{{- end }}

{{/* All engines, comma-separated, in the order of use. */}}
{{- define "memloop.engineUrls" -}}
{{- $urls := .Values.engine.urls -}}
{{- if not $urls -}}
{{- $served := dict -}}
{{- range .Values.inference.models -}}
{{- $model := include "memloop.model" (dict "root" $ "entry" .) | fromJson -}}
{{- $_ := set $served (include "memloop.servedName" $model) $model.name -}}
{{- $urls = append $urls (printf "%s://%s:7803/v1" (include "memloop.scheme" $) (include "memloop.podsHost" (dict "root" $ "component" (printf "inference-%s" $model.name)))) -}}
{{- end -}}
{{- if gt (len $served) 1 }}{{ fail (printf "inference.models serve different models (%s): set engine.urls to a router for these models, or list them in models" (keys $served | sortAlpha | join ", ")) }}{{ end -}}
{{- end -}}
{{- if not $urls }}{{ fail "engine.urls is needed when inference.models is empty" }}{{ end -}}
{{ join "," $urls }}
{{- end }}

{{/* The port of a URL: its own, or its scheme's. */}}
{{- define "memloop.port" -}}
{{- $parts := urlParse . -}}
{{- $given := regexFind ":[0-9]+$" $parts.host | trimPrefix ":" -}}
{{- if $given }}{{ $given }}{{ else if hasPrefix "redis" $parts.scheme }}6379{{ else if eq $parts.scheme "sentinel" }}26379{{ else if eq $parts.scheme "https" }}443{{ else }}80{{ end -}}
{{- end }}

{{/* The ports of several URLs, as a JSON list. */}}
{{- define "memloop.ports" -}}
{{- $ports := list -}}
{{- range . }}{{ $ports = append $ports (include "memloop.port" . | int) }}{{ end -}}
{{ uniq $ports | toJson }}
{{- end }}

{{/* Settings shared by gateway and worker, as JSON. */}}
{{- define "memloop.gatewayConfig" -}}
{{- $storage := .Values.storage.url | default (ternary "file:///data" "" (ne .Values.storage.existingClaim "")) -}}
{{- $config := dict
      "MEMLOOP_STORE_URL" (printf "%s://%s:7801" (include "memloop.scheme" .) (include "memloop.podsHost" (dict "root" . "component" "memory-store")))
      "MEMLOOP_STORAGE_URL" $storage
      "MEMLOOP_STARTUP_WAIT_S" (toString .Values.engine.startupWaitSeconds) -}}
{{- $config = merge $config (include "memloop.limits" . | fromJson) -}}
{{- if .Values.models }}{{ $_ := set $config "MEMLOOP_MODELS" "/etc/memloop/models/models.toml" }}
{{- else }}{{ $config = merge $config (include "memloop.oneModel" . | fromJson) }}
{{- end -}}
{{ toJson $config }}
{{- end }}

{{- define "memloop.oneModel" -}}
{{- $engines := splitList "," (include "memloop.engineUrls" .) -}}
{{- $config := dict
      "MEMLOOP_ENGINE_URL" (first $engines)
      "MEMLOOP_ENGINE_FALLBACK_URLS" (rest $engines | join ",")
      "MEMLOOP_ENGINE_DIALECT" .Values.engine.dialect
      "MEMLOOP_MODEL" (include "memloop.loopModel" .) -}}
{{- with .Values.inference.models }}
{{- $_ := set $config "MEMLOOP_INFERENCE_URL" (printf "%s://%s:7802" (include "memloop.scheme" $) (include "memloop.podsHost" (dict "root" $ "component" (printf "inference-%s" (first .).name)))) }}
{{- end -}}
{{ toJson $config }}
{{- end }}
