{{/* A peer: the pods of a component of this release. root, component */}}
{{- define "memloop.peer" -}}
{ podSelector: { matchLabels: { app.kubernetes.io/name: memloop, app.kubernetes.io/instance: {{ .root.Release.Name }}, app.kubernetes.io/component: {{ .component }} } } }
{{- end }}

{{/* A rule: to or from peers (an empty list allows every peer), on ports. direction, peers, ports, protocols */}}
{{- define "memloop.rule" -}}
- ports:
    {{- range $port := .ports }}
    {{- range $.protocols | default (list "TCP") }}
    - { protocol: {{ . }}, port: {{ $port }} }
    {{- end }}
    {{- end }}
  {{- with .peers }}
  {{ $.direction }}: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Rules in a policy; an empty list if there are none. */}}
{{- define "memloop.rules" -}}
{{- with trim . }}{{ nindent 4 . }}{{ else }} []{{ end -}}
{{- end }}

{{/* Egress by openings of networkPolicy; without one, to every address on the ports. openings, ports, protocols */}}
{{- define "memloop.toOpenings" -}}
{{- range .openings | default (list (dict)) }}
{{ include "memloop.rule" (dict "direction" "to" "peers" .peers "ports" (.ports | default $.ports) "protocols" $.protocols) }}
{{- end }}
{{- end }}

{{/* The openings that a user adds to a part. root, part */}}
{{- define "memloop.toExtra" -}}
{{- range index .root.Values.networkPolicy.extraEgress .part }}
{{ include "memloop.toOpenings" (dict "openings" (list .)) | trim }}
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
{{- if $sentinels }}{{ $ports = append $ports 6379 }}{{ end -}}
{{ include "memloop.toOpenings" (dict "openings" $values.networkPolicy.outside.redis "ports" (uniq $ports | default (list 6379 26379))) | trim }}
{{- end -}}
{{- end }}

{{- define "memloop.toQdrant" -}}
{{- if .Values.qdrant.enabled -}}
- to: [{{ include "memloop.peer" (dict "root" . "component" "qdrant") }}]
  ports: [{ protocol: TCP, port: 6333 }]
{{- else -}}
{{- $ports := include "memloop.ports" (splitList "," (include "memloop.qdrantUrl" .)) | fromJsonArray -}}
{{- with .Values.qdrant.grpcPort }}{{ $ports = append $ports . }}{{ end -}}
{{ include "memloop.toOpenings" (dict "openings" .Values.networkPolicy.outside.qdrant "ports" $ports) | trim }}
{{- end -}}
{{- end }}

{{- define "memloop.toTracing" -}}
{{- with .Values.tracing.otlpEndpoint -}}
{{ include "memloop.toOpenings" (dict "openings" $.Values.networkPolicy.outside.tracing "ports" (list (include "memloop.port" .))) | trim }}
{{- end -}}
{{- end }}

{{/* Fails where the ports to open are in SRV records, which Helm cannot read. urls, openings */}}
{{- define "memloop.refuseUnknownPorts" -}}
{{- if contains "+srv://" (join "," .urls) -}}
{{- range .openings | default (list (dict)) }}
{{- if not .ports }}{{ fail "networkPolicy.outside.engine: give the ports of engines that are found by SRV records, in each entry" }}{{ end -}}
{{- end -}}
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
{{- include "memloop.refuseUnknownPorts" (dict "urls" . "openings" $outside.engine) }}
{{ include "memloop.toOpenings" (dict "openings" $outside.engine "ports" (include "memloop.ports" . | fromJsonArray)) | trim }}
{{- end }}
{{- if .Values.storage.url }}
{{ include "memloop.toOpenings" (dict "openings" $outside.storage "ports" (list 443)) | trim }}
{{- end }}
{{ include "memloop.toTracing" . }}
{{- end }}

{{/* Egress of the store to the endpoints of embeddings and reranking that its settings name. */}}
{{- define "memloop.toEncoders" -}}
{{- $urls := compact (list (get .Values.memoryStore.env "MEMLOOP_EMBEDDING_URL") (get .Values.memoryStore.env "MEMLOOP_RERANK_URL")) -}}
{{- with $urls -}}
{{ include "memloop.toOpenings" (dict "openings" $.Values.networkPolicy.outside.embedding "ports" (include "memloop.ports" . | fromJsonArray)) | trim }}
{{- end }}
{{- end }}

{{/* Whether gateways download documents from URLs: not empty. */}}
{{- define "memloop.downloads" -}}
{{- if has (get .Values.gateway.env "MEMLOOP_FETCH_URLS" | toString | lower) (list "true" "1" "yes" "on") }}true{{ end -}}
{{- end }}

{{/* From Prometheus. root, ports */}}
{{- define "memloop.fromMetrics" -}}
{{- with .root.Values.networkPolicy.metrics -}}
{{ include "memloop.rule" (dict "direction" "from" "peers" . "ports" $.ports) }}
{{- else }}
{{- if .root.Values.monitoring.monitors }}{{ fail "networkPolicy.metrics is needed with monitoring.monitors: the peers of your Prometheus" }}{{ end -}}
{{- end }}
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
