{{- define "memloop.labels" -}}
app.kubernetes.io/name: memloop
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "memloop.image" -}}
{{ .root.Values.image.registry }}memloop/{{ .image }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "memloop.engineUrl" -}}
{{- if .Values.inference.enabled -}}
http://{{ .Release.Name }}-inference:7803/v1
{{- else -}}
{{ required "inference.engineUrl is needed when inference is not enabled" .Values.inference.engineUrl }}
{{- end -}}
{{- end }}

{{/* A stateless process of ours: non-root, read-only root, no service account token. */}}
{{- define "memloop.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels: {{- include "memloop.labels" . | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels: {{- include "memloop.labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "memloop.labels" . | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        {{- if .claim }}
        fsGroup: 10001
        {{- end }}
        seccompProfile: { type: RuntimeDefault }
      containers:
        - name: {{ .component }}
          image: {{ include "memloop.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          command: {{ .command | toJson }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          envFrom:
            - secretRef: { name: {{ .root.Values.existingSecret }} }
          env:
            - { name: MEMLOOP_HOST, value: "0.0.0.0" }
            - { name: MEMLOOP_PORT, value: {{ .port | quote }} }
            - { name: MEMLOOP_REDIS_URL, value: {{ .root.Values.redisUrl | quote }} }
            {{- range $name, $value := .env }}
            - { name: {{ $name }}, value: {{ $value | quote }} }
            {{- end }}
          ports:
            - { name: http, containerPort: {{ .port }} }
          livenessProbe:
            httpGet: { path: /livez, port: http }
            periodSeconds: 10
          readinessProbe:
            httpGet: { path: /readyz, port: http }
            periodSeconds: 5
          startupProbe:
            httpGet: { path: /livez, port: http }
            periodSeconds: 2
            failureThreshold: 60
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - { name: tmp, mountPath: /tmp }
            {{- if .claim }}
            - { name: documents, mountPath: /data }
            {{- end }}
      volumes:
        - { name: tmp, emptyDir: {} }
        {{- with .claim }}
        - { name: documents, persistentVolumeClaim: { claimName: {{ . | quote }} } }
        {{- end }}
{{- end }}

{{- define "memloop.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels: {{- include "memloop.labels" . | nindent 4 }}
spec:
  selector: {{- include "memloop.labels" . | nindent 4 }}
  ports:
    - { name: http, port: {{ .port }}, targetPort: http }
{{- end }}
