{{/* http, or https between the parts. */}}
{{- define "memloop.scheme" -}}
{{ ternary "https" "http" .Values.tls.enabled }}
{{- end }}

{{- define "memloop.tlsSecret" -}}
{{- $tls := .Values.tls -}}
{{- if not (or $tls.secretName $tls.issuer.name) }}{{ fail "tls.enabled needs tls.secretName, or tls.issuer.name for cert-manager" }}{{ end -}}
{{ $tls.secretName | default (include "memloop.name" (dict "root" . "component" "tls")) }}
{{- end }}

{{/* The whole folder: files of a Secret that is mounted with subPath are never renewed. */}}
{{- define "memloop.tlsMount" -}}
{{- if .Values.tls.enabled -}}
- { name: tls, mountPath: /etc/memloop/tls, readOnly: true }
{{- end }}
{{- end }}

{{- define "memloop.tlsVolume" -}}
{{- if .Values.tls.enabled -}}
- { name: tls, secret: { secretName: {{ include "memloop.tlsSecret" . | quote }} } }
{{- end }}
{{- end }}

{{/* What a server shows and asks for, as JSON. */}}
{{- define "memloop.tlsServer" -}}
{{- $files := dict "MEMLOOP_TLS_CERT" "/etc/memloop/tls/tls.crt" "MEMLOOP_TLS_KEY" "/etc/memloop/tls/tls.key" "MEMLOOP_TLS_CLIENT_CA" "/etc/memloop/tls/ca.crt" -}}
{{ ternary $files dict .Values.tls.enabled | toJson }}
{{- end }}

{{/* The port of the kubelet's probes, which have no certificate to show. root, port */}}
{{- define "memloop.probePort" -}}
{{ ternary "metrics" .port .root.Values.tls.enabled }}
{{- end }}
