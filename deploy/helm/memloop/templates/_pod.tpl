{{/* Security context of every pod: no token, no root. */}}
{{- define "memloop.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- range $name, $id := .Values.podSecurity }}
  {{- if $id }}
  {{ $name }}: {{ $id }}
  {{- end }}
  {{- end }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "memloop.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "memloop.scheduling" -}}
{{- include "memloop.placement" . }}
{{- $selector := include "memloop.selector" . }}
{{- $spread := .root.Values.topologySpread }}
{{- $by := dict "topology.kubernetes.io/zone" $spread.zones "kubernetes.io/hostname" $spread.nodes }}
{{- if or $spread.zones $spread.nodes }}
topologySpreadConstraints:
  {{- range $key, $unsatisfiable := $by }}
  {{- if $unsatisfiable }}
  - topologyKey: {{ $key }}
    maxSkew: 1
    whenUnsatisfiable: {{ $unsatisfiable }}
    labelSelector:
      matchLabels: {{- $selector | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Settings without secrets: the component's own, tracing, authorities and `env`. Empty ones are left out. */}}
{{- define "memloop.config" -}}
{{- $values := .root.Values -}}
{{- $config := dict -}}
{{- $shared := dict "OTEL_EXPORTER_OTLP_ENDPOINT" $values.tracing.otlpEndpoint -}}
{{- if $values.caBundle.configMap }}{{- $_ := set $shared "SSL_CERT_FILE" (include "memloop.caFile" .root) }}{{- end -}}
{{- if $values.tls.enabled }}{{- $shared = merge $shared (dict "MEMLOOP_CONNECT_CA" "/etc/memloop/tls/ca.crt" "MEMLOOP_CONNECT_CERT" "/etc/memloop/tls/tls.crt" "MEMLOOP_CONNECT_KEY" "/etc/memloop/tls/tls.key") }}{{- end -}}
{{- range $name, $value := merge (dict) .values.env .own $shared -}}
{{- if and (kindIs "float64" $value) (eq (float64 (int64 $value)) $value) }}{{- $value = int64 $value }}{{- end -}}{{/* not 5.3e+08 */}}
{{- if ne (toString $value) "" }}{{- $_ := set $config $name (toString $value) }}{{- end -}}
{{- end -}}
{{ toJson $config }}
{{- end }}

{{- define "memloop.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata: {{- include "memloop.metadata" . | nindent 2 }}
data: {{- toYaml .config | nindent 2 }}
{{- end }}

{{- define "memloop.caFile" -}}
/etc/memloop/ca/{{ .Values.caBundle.key }}
{{- end }}

{{- define "memloop.caMount" -}}
{{- with .Values.caBundle.configMap -}}
- { name: ca, mountPath: /etc/memloop/ca, readOnly: true }
{{- end }}
{{ include "memloop.tlsMount" . }}
{{- end }}

{{- define "memloop.caVolume" -}}
{{- with .Values.caBundle.configMap -}}
- { name: ca, configMap: { name: {{ . | quote }} } }
{{- end }}
{{ include "memloop.tlsVolume" . }}
{{- end }}

{{- define "memloop.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "memloop.metadata" . | nindent 2 }}
  {{- with .values.serviceAccountAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
