{{/* NAME of an object: release and component. The release's name must leave room for it. */}}
{{- define "memloop.name" -}}
{{- $name := printf "%s-%s" .root.Release.Name .component -}}
{{- if gt (len $name) 63 }}{{ fail (printf "the release's name is too long: %s has more than 63 characters" $name) }}{{ end -}}
{{ $name }}
{{- end }}

{{- define "memloop.selector" -}}
app.kubernetes.io/name: memloop
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .group | default .component }}
{{- with .model }}
memloop/model: {{ . }}
{{- end }}
{{- end }}

{{- define "memloop.labels" -}}
{{ include "memloop.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* Metadata with name and labels. */}}
{{- define "memloop.metadata" -}}
name: {{ include "memloop.name" . }}
namespace: {{ .root.Release.Namespace }}
labels: {{- include "memloop.labels" . | nindent 2 }}
{{- end }}

{{- define "memloop.image" -}}
{{- $image := .image -}}
{{ required "image.registry is needed: the registry to which you pushed the images of deploy/docker" ($image.registry | default .root.Values.image.registry) }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "memloop.secretName" -}}
{{- if .Values.secrets.externalSecret.enabled -}}
{{ include "memloop.name" (dict "root" . "component" "secrets") }}
{{- else -}}
{{ required "secrets.existingSecret is needed: the name of a Secret with MEMLOOP_API_KEYS and MEMLOOP_STORE_KEY" .Values.secrets.existingSecret }}
{{- end -}}
{{- end }}
