{{/* The parts of one entry of inference.models. root, component, group, model (its name), values (with defaults), image, config */}}
{{/* Words quoted for a shell. */}}
{{- define "memloop.shellWords" -}}
{{- range $number, $word := . }}{{ if $number }} {{ end }}'{{ replace "'" "'\\''" $word }}'{{ end -}}
{{- end }}

{{/* Who uses a volume of weights: "all" replicas one claim, "one" replica alone, or "each" its own. */}}
{{- define "memloop.cacheOf" -}}
{{- $single := and (eq (int .replicas) 1) (eq .autoscaling.mode "none") -}}
{{- if eq .cache.accessMode "ReadWriteMany" }}all{{ else if $single }}one{{ else if .cache.existingClaim -}}
{{ fail (printf "inference.models: %s: several replicas share cache.existingClaim: set cache.accessMode to ReadWriteMany, if the claim is" .name) }}
{{- else }}each{{ end -}}
{{- end }}

{{- define "memloop.inferenceCache" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "memloop.metadata" . | nindent 2 }}
  annotations: { helm.sh/resource-policy: keep }
spec: {{- include "memloop.claimSpec" .values.cache | nindent 2 }}
{{- end }}

{{- define "memloop.cacheVolume" -}}
- name: cache
  {{- if eq (include "memloop.cacheOf" .values) "each" }}
  ephemeral:
    volumeClaimTemplate:
      spec: {{- include "memloop.claimSpec" .values.cache | nindent 8 }}
  {{- else }}
  persistentVolumeClaim: { claimName: {{ .values.cache.existingClaim | default (include "memloop.name" .) }} }
  {{- end }}
{{- end }}

{{/* Fetches a published checkpoint into the cache before the engine starts. root, values, image */}}
{{- define "memloop.fetchContainer" -}}
{{- if not (hasPrefix "/cache/" .values.modelPath) }}{{ fail (printf "inference.models: %s: modelUrl is fetched into modelPath: name a folder below /cache" .values.name) }}{{ end -}}
name: fetch
image: {{ include "memloop.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: [/opt/memloop/bin/python, -m, inference.main, fetch, {{ .values.modelUrl | quote }}, {{ .values.modelPath | quote }}]
{{- with .values.modelUrlSecret }}
envFrom:
  - secretRef: { name: {{ . | quote }} }
{{- end }}
env:
  - { name: HOME, value: /tmp }
  {{- if .root.Values.caBundle.configMap }}
  - { name: SSL_CERT_FILE, value: {{ include "memloop.caFile" .root }} }
  {{- end }}
  {{- include "memloop.extra" .values.extraEnv | nindent 2 }}
resources: {{- toYaml .values.fetchResources | nindent 2 }}
volumeMounts:
  - { name: cache, mountPath: /cache }
  - { name: tmp, mountPath: /tmp }
  {{- include "memloop.caMount" .root | nindent 2 }}
{{- end }}

{{/* A disk that one node at a time can attach is free for the next pod only when the old one has ended. */}}
{{- define "memloop.inferenceStrategy" -}}
{{- if eq (include "memloop.cacheOf" .values) "one" -}}
type: Recreate
{{- else -}}
type: RollingUpdate
rollingUpdate: { maxSurge: {{ .values.maxSurge }}, maxUnavailable: {{ .values.maxUnavailable }} }
{{- end -}}
{{- end }}

{{- define "memloop.inferenceDeployment" -}}
{{- $drain := add .values.drainSeconds (mul 2 .values.stopTimeoutSeconds) 20 }}
apiVersion: apps/v1
kind: Deployment
metadata: {{- include "memloop.metadata" . | nindent 2 }}
spec:
  {{- if eq .values.autoscaling.mode "none" }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  progressDeadlineSeconds: {{ add .values.startTimeoutSeconds 600 }}
  strategy: {{- include "memloop.inferenceStrategy" . | nindent 4 }}
  selector:
    matchLabels: {{- include "memloop.selector" . | nindent 6 }}
  template:
    metadata: {{- include "memloop.podMetadata" . | nindent 6 }}
    spec:
      {{- include "memloop.podSecurity" .root | nindent 6 }}
      serviceAccountName: {{ include "memloop.name" (dict "root" .root "component" "inference") }}
      terminationGracePeriodSeconds: {{ $drain }}  # requests may end, the engine may end, then force
      {{- with .values.runtimeClassName }}
      runtimeClassName: {{ . }}
      {{- end }}
      {{- include "memloop.scheduling" . | nindent 6 }}
      {{- include "memloop.initContainers" . | nindent 6 }}
      containers:
        - name: inference
          image: {{ include "memloop.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          securityContext: {{- include "memloop.containerSecurity" . | nindent 12 }}
          envFrom:
            - configMapRef: { name: {{ include "memloop.name" . }} }
          env:
            {{- .env | nindent 12 }}
            {{- include "memloop.extra" .values.extraEnv | nindent 12 }}
          ports:
            - { name: launcher, containerPort: 7802 }
            - { name: engine, containerPort: 7803 }
            - { name: metrics, containerPort: 7809 }
          startupProbe:
            httpGet: { path: /readyz, port: {{ include "memloop.probePort" (dict "root" .root "port" "launcher") }} }
            periodSeconds: 10
            timeoutSeconds: 4
            failureThreshold: {{ div (add .values.startTimeoutSeconds 300) 10 }}  # the weights, then the warm-up
          readinessProbe:
            httpGet: { path: /readyz, port: {{ include "memloop.probePort" (dict "root" .root "port" "launcher") }} }
            periodSeconds: 5
            timeoutSeconds: 4
          livenessProbe:
            httpGet: { path: /livez, port: {{ include "memloop.probePort" (dict "root" .root "port" "launcher") }} }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          resources:
            requests: {{- toYaml .values.resources.requests | nindent 14 }}
            limits: {{- merge (ternary (dict .values.gpuResource .values.gpus) dict (ne (int .values.gpus) 0)) .values.resources.limits | toYaml | nindent 14 }}
          volumeMounts:
            - { name: cache, mountPath: /cache }
            - { name: shm, mountPath: /dev/shm }
            - { name: tmp, mountPath: /tmp }
            {{- include "memloop.caMount" .root | nindent 12 }}
            {{- include "memloop.extra" .values.extraVolumeMounts | nindent 12 }}
      volumes:
        {{- include "memloop.cacheVolume" . | nindent 8 }}
        - { name: shm, emptyDir: { medium: Memory, sizeLimit: {{ .values.sharedMemory }} } }
        - { name: tmp, emptyDir: {} }
        {{- include "memloop.caVolume" .root | nindent 8 }}
        {{- include "memloop.extra" .values.extraVolumes | nindent 8 }}
{{- end }}

{{/* Not empty if an engine may have no replica. */}}
{{- define "memloop.scalesToZero" -}}
{{- range .Values.inference.models -}}
{{- $scaling := (include "memloop.model" (dict "root" $ "entry" .) | fromJson).autoscaling -}}
{{- if and (eq $scaling.mode "load") (not $scaling.minReplicas) }}yes{{ end -}}
{{- end -}}
{{- end }}
