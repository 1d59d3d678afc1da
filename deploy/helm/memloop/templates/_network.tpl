{{/* A peer: the pods of a component of this release. root, component */}}
{{- define "memloop.peer" -}}
{ podSelector: { matchLabels: { app.kubernetes.io/name: memloop, app.kubernetes.io/instance: {{ .root.Release.Name }}, app.kubernetes.io/component: {{ .component }} } } }
{{- end }}

{{/* A rule: to or from peers (an empty list allows every peer), on ports. direction, peers, ports */}}
{{- define "memloop.rule" -}}
- ports:
    {{- range .ports }}
    - { protocol: TCP, port: {{ . }} }
    {{- end }}
  {{- with .peers }}
  {{ $.direction }}: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Egress to the public internet on port 443. */}}
{{- define "memloop.internet" -}}
- ports: [{ protocol: TCP, port: 443 }]
  to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except: {{- toYaml .Values.networkPolicy.internet.except | nindent 10 }}
{{- end }}

{{/* Egress to Redis and the trace collector, inside or outside the release. */}}
{{- define "memloop.toRedis" -}}
{{- $values := .Values -}}
{{- if $values.redis.enabled -}}
- to: [{{ include "memloop.peer" (dict "root" . "component" "redis") }}]
  ports: [{ protocol: TCP, port: 6379 }]
{{- else -}}
{{- $ports := list -}}
{{- $sentinels := contains "+sentinel://" $values.redis.url -}}
{{- range splitList "," $values.redis.url -}}{{/* a cluster's URL names several nodes, and one of Sentinels several of these */}}
{{- if . }}{{ $ports = append $ports (include "memloop.port" (printf "%s://%s" (ternary "sentinel" "redis" $sentinels) (splitList "://" . | last))) }}{{ end -}}
{{- end -}}
{{- if $sentinels }}{{ $ports = append $ports $values.networkPolicy.outside.redisPort }}{{ end -}}
{{ include "memloop.rule" (dict "direction" "to" "peers" $values.networkPolicy.outside.redis "ports" (uniq $ports | default (list $values.networkPolicy.outside.redisPort 26379))) }}
{{- end -}}
{{- end }}

{{- define "memloop.toTracing" -}}
{{- with .Values.tracing.otlpEndpoint -}}
{{ include "memloop.rule" (dict "direction" "to" "peers" $.Values.networkPolicy.outside.tracing "ports" (list (include "memloop.port" .))) }}
{{- end -}}
{{- end }}

{{/* Egress of gateway and worker: store, Redis, engines, bucket, traces. */}}
{{- define "memloop.toDependencies" -}}
{{- $outside := .Values.networkPolicy.outside -}}
- to: [{{ include "memloop.peer" (dict "root" . "component" "memory-store") }}]
  ports: [{ protocol: TCP, port: 7801 }]
{{ include "memloop.toRedis" . }}
{{- if .Values.inference.models }}
- to: [{{ include "memloop.peer" (dict "root" . "component" "inference") }}]
  ports: [{ protocol: TCP, port: 7802 }, { protocol: TCP, port: 7803 }]
{{- end }}
{{- with include "memloop.outsideEngines" . | fromJsonArray }}
{{- $ports := list }}
{{- range . }}{{ $ports = append $ports (include "memloop.port" .) }}{{ end }}
{{ include "memloop.rule" (dict "direction" "to" "peers" $outside.engine "ports" (uniq $ports)) }}
{{- end }}
{{- if .Values.storage.url }}
{{ include "memloop.rule" (dict "direction" "to" "peers" $outside.storage "ports" (list $outside.storagePort)) }}
{{- end }}
{{ include "memloop.toTracing" . }}
{{- end }}

{{/* From Prometheus. root, ports */}}
{{- define "memloop.fromMetrics" -}}
{{ include "memloop.rule" (dict "direction" "from" "peers" .root.Values.networkPolicy.metrics "ports" .ports) }}
{{- end }}

{{- define "memloop.policyHead" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{- include "memloop.metadata" . | nindent 2 }}
spec:
  policyTypes: [Ingress, Egress]
  podSelector:
    matchLabels: {{- include "memloop.selector" . | nindent 6 }}
{{- end }}
