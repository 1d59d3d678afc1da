{{/*
What users may add to every pod: labels, annotations, variables, volumes, init containers, and where it runs.
Each takes values with these keys; the chart's own parts come first.
*/}}
{{- define "memloop.podMetadata" -}}
labels:
  {{- include "memloop.selector" . | nindent 2 }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with include "memloop.podAnnotations" . | trim }}
annotations: {{- nindent 2 . }}
{{- end }}
{{- end }}

{{/* A change of settings, models or a secret's revision restarts the pods. config, models, env (its variables, as text) */}}
{{- define "memloop.podAnnotations" -}}
{{- with .config }}
checksum/config: {{ . | toJson | sha256sum }}
{{- end }}
{{- with .models }}
checksum/models: {{ . | sha256sum }}
{{- end }}
{{- range $key, $revision := include "memloop.secretRevisions" . | fromJson }}
memloop/revision-{{ $key }}: {{ $revision | quote }}
{{- end }}
{{- with .values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Revisions of the keys of Secrets that a pod's variables read, as JSON. root, env */}}
{{- define "memloop.secretRevisions" -}}
{{- $read := dict -}}
{{- range .env | default "[]" | fromYamlArray -}}
{{- with dig "valueFrom" "secretKeyRef" "key" "" . -}}
{{- $revision := get $.root.Values.secrets.revisions . -}}
{{- if $revision }}{{ $_ := set $read . $revision }}{{ end -}}
{{- end -}}
{{- end -}}
{{ toJson $read }}
{{- end }}

{{- define "memloop.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName | default (include "memloop.priorityClass" .) }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* The release's class for a pod; empty without classes. root, component, group */}}
{{- define "memloop.priorityClass" -}}
{{- if .root.Values.priorityClasses.enabled -}}
{{ printf "%s-%s-%s" .root.Release.Namespace .root.Release.Name (ternary "training" "serving" (eq .component "trainer")) }}
{{- end -}}
{{- end }}

{{/* Init containers are as confined as ours, unless they say otherwise. */}}
{{- define "memloop.initContainers" -}}
{{- $security := dict "securityContext" (include "memloop.containerSecurity" . | fromYaml) -}}
{{- with .values.initContainers }}
initContainers:
  {{- range . }}
  - {{- mergeOverwrite (deepCopy $security) . | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "memloop.extra" -}}
{{- with . }}
{{ toYaml . }}
{{- end }}
{{- end }}
