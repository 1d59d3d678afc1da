{{/* The parts of one entry of inference.models. root, component, group, model (its name), values (with defaults), image, config */}}
{{- define "memloop.inferenceService" -}}
apiVersion: v1
kind: Service
metadata: {{- include "memloop.metadata" . | nindent 2 }}
spec:
  selector: {{- include "memloop.selector" . | nindent 4 }}
  ports:
    - { name: launcher, port: 7802, targetPort: launcher }
    - { name: engine, port: 7803, targetPort: engine }
{{- end }}

{{- define "memloop.inferenceCache" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "memloop.metadata" . | nindent 2 }}
  annotations: { helm.sh/resource-policy: keep }
spec:
  accessModes: [{{ .values.cache.accessMode }}]
  {{- with .values.cache.storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources: { requests: { storage: {{ .values.cache.size }} } }
{{- end }}

{{- define "memloop.inferenceDeployment" -}}
{{- $drain := add .values.preStopSeconds (mul 2 .values.stopTimeoutSeconds) 20 }}
apiVersion: apps/v1
kind: Deployment
metadata: {{- include "memloop.metadata" . | nindent 2 }}
spec:
  {{- if eq .values.autoscaling.mode "none" }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  progressDeadlineSeconds: {{ add .values.startTimeoutSeconds 600 }}
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxSurge: {{ .values.maxSurge }}, maxUnavailable: {{ .values.maxUnavailable }} }
  selector:
    matchLabels: {{- include "memloop.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "memloop.selector" . | nindent 8 }}
      annotations: {{- include "memloop.podAnnotations" . | nindent 8 }}
    spec:
      {{- include "memloop.podSecurity" .root | nindent 6 }}
      serviceAccountName: {{ include "memloop.name" (dict "root" .root "component" "inference") }}
      terminationGracePeriodSeconds: {{ $drain }}  # requests may end, the engine may end, then force
      {{- with .values.runtimeClassName }}
      runtimeClassName: {{ . }}
      {{- end }}
      {{- include "memloop.scheduling" . | nindent 6 }}
      containers:
        - name: inference
          image: {{ include "memloop.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          securityContext: {{- include "memloop.containerSecurity" . | nindent 12 }}
          envFrom:
            - configMapRef: { name: {{ include "memloop.name" . }} }
          env:
            {{- include "memloop.secretEnv" (dict "root" .root "name" "MEMLOOP_ENGINE_API_KEY") | nindent 12 }}
            {{- with .values.hubTokenSecret.name }}
            - name: HF_TOKEN
              valueFrom: { secretKeyRef: { name: {{ . | quote }}, key: {{ $.values.hubTokenSecret.key | quote }} } }
            {{- end }}
          ports:
            - { name: launcher, containerPort: 7802 }
            - { name: engine, containerPort: 7803 }
          lifecycle:
            preStop: { sleep: { seconds: {{ .values.preStopSeconds }} } }
          startupProbe:
            httpGet: { path: /readyz, port: launcher }
            periodSeconds: 10
            timeoutSeconds: 4
            failureThreshold: {{ div (add .values.startTimeoutSeconds 300) 10 }}  # the weights, then the warm-up
          readinessProbe:
            httpGet: { path: /readyz, port: launcher }
            periodSeconds: 5
            timeoutSeconds: 4
          livenessProbe:
            httpGet: { path: /livez, port: launcher }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          resources:
            requests: {{- toYaml .values.resources.requests | nindent 14 }}
            limits: {{- merge (dict .values.gpuResource .values.gpus) .values.resources.limits | toYaml | nindent 14 }}
          volumeMounts:
            - { name: cache, mountPath: /cache }
            - { name: shm, mountPath: /dev/shm }
            - { name: tmp, mountPath: /tmp }
            {{- include "memloop.caMount" .root | nindent 12 }}
      volumes:
        - { name: cache, persistentVolumeClaim: { claimName: {{ .values.cache.existingClaim | default (include "memloop.name" .) }} } }
        - { name: shm, emptyDir: { medium: Memory, sizeLimit: {{ .values.sharedMemory }} } }
        - { name: tmp, emptyDir: {} }
        {{- include "memloop.caVolume" .root | nindent 8 }}
{{- end }}
