{{/*
A stateless process of ours: settings, service account, Deployment.
root, component, values, image, port, command, config; secretEnv: its variables from Secrets; envFrom; claim: for /data;
models: the text of the models file; startup and grace, seconds: what its start and its end may take; probes: the port that they ask.
*/}}
{{- define "memloop.process" -}}
{{- $_ := set . "env" (printf "%s\n%s" (include "memloop.redisEnv" .root) .secretEnv) -}}
{{ include "memloop.configMap" . }}
---
{{ include "memloop.serviceAccount" . }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{- include "memloop.metadata" . | nindent 2 }}
spec:
  {{- if eq .values.autoscaling.mode "none" }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  progressDeadlineSeconds: {{ add .startup 300 }}
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }
  selector:
    matchLabels: {{- include "memloop.selector" . | nindent 6 }}
  template:
    metadata: {{- include "memloop.podMetadata" . | nindent 6 }}
    spec:
      {{- include "memloop.podSecurity" .root | nindent 6 }}
      serviceAccountName: {{ include "memloop.name" . }}
      terminationGracePeriodSeconds: {{ .grace }}
      {{- include "memloop.scheduling" . | nindent 6 }}
      {{- include "memloop.initContainers" . | nindent 6 }}
      containers:
        - name: {{ .component }}
          image: {{ include "memloop.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          command: {{ .command | toJson }}
          securityContext: {{- include "memloop.containerSecurity" . | nindent 12 }}
          envFrom:
            - configMapRef: { name: {{ include "memloop.name" . }} }
            {{- with .envFrom }}
            - secretRef: { name: {{ . | quote }} }
            {{- end }}
          env:
            {{- .env | nindent 12 }}
            {{- include "memloop.extra" .values.extraEnv | nindent 12 }}
          ports:
            - { name: http, containerPort: {{ .port }} }
            - { name: metrics, containerPort: 7809 }
          {{- /* A pod becomes ready only with its dependencies, so that a rollout stops. Their later loss must not make every pod unready at once. */}}
          startupProbe:
            httpGet: { path: /readyz, port: {{ .probes | default "http" }} }
            periodSeconds: 2
            timeoutSeconds: 4
            failureThreshold: {{ div (add .startup 60) 2 }}
          readinessProbe:
            httpGet: { path: /livez, port: {{ .probes | default "http" }} }
            periodSeconds: 5
            timeoutSeconds: 3
          livenessProbe:
            httpGet: { path: /livez, port: {{ .probes | default "http" }} }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - { name: tmp, mountPath: /tmp }
            {{- if .claim }}
            - { name: documents, mountPath: /data }
            {{- end }}
            {{- include "memloop.caMount" .root | nindent 12 }}
            {{- if .models }}
            {{- include "memloop.modelMounts" .root | nindent 12 }}
            {{- end }}
            {{- include "memloop.extra" .values.extraVolumeMounts | nindent 12 }}
      volumes:
        - { name: tmp, emptyDir: { sizeLimit: 2Gi } }
        {{- with .claim }}
        - { name: documents, persistentVolumeClaim: { claimName: {{ . | quote }} } }
        {{- end }}
        {{- include "memloop.caVolume" .root | nindent 8 }}
        {{- if .models }}
        {{- include "memloop.modelVolumes" .root | nindent 8 }}
        {{- end }}
        {{- include "memloop.extra" .values.extraVolumes | nindent 8 }}
{{- end }}
