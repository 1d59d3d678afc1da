{{/*
Two Services of one process: NAME has an address, for callers that do not choose; NAME-pods is headless, and its name resolves to
each ready pod, among which gateway and worker choose. root, component, group, model; ports: names to numbers
*/}}
{{- define "memloop.services" -}}
apiVersion: v1
kind: Service
metadata: {{- include "memloop.metadata" . | nindent 2 }}
spec: {{- include "memloop.serviceSpec" . | nindent 2 }}
---
apiVersion: v1
kind: Service
{{- /* Another component, so that monitors select the Service above alone. */}}
metadata: {{- include "memloop.metadata" (dict "root" .root "component" (printf "%s-pods" .component)) | nindent 2 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: false
  {{- include "memloop.serviceSpec" . | nindent 2 }}
{{- end }}

{{- define "memloop.serviceSpec" -}}
selector: {{- include "memloop.selector" . | nindent 2 }}
ports:
  {{- range $name, $number := .ports }}
  - { name: {{ $name }}, port: {{ $number }}, targetPort: {{ $name }} }
  {{- end }}
{{- end }}

{{/* The name that resolves to the ready pods. root, component */}}
{{- define "memloop.podsHost" -}}
{{ include "memloop.name" (dict "root" .root "component" (printf "%s-pods" .component)) }}
{{- end }}
