{{/* Where verl's file logger writes the steps of a run. */}}
{{- define "memloop.runLog" -}}
/runs/{{ .runId }}.jsonl
{{- end }}

{{- define "memloop.rayPod" -}}
{{- $trainer := .root.Values.trainer -}}
metadata: {{- include "memloop.podMetadata" . | nindent 2 }}
spec:
  {{- include "memloop.podSecurity" .root | nindent 2 }}
  serviceAccountName: {{ include "memloop.name" . }}
  {{- include "memloop.placement" . | nindent 2 }}
  {{- include "memloop.initContainers" . | nindent 2 }}
  containers:
    - name: {{ .container }}
      image: {{ include "memloop.image" (dict "root" .root "image" (ternary .root.Values.images.trainerGpu .root.Values.images.trainer (gt (int $trainer.workers.gpus) 0))) }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      securityContext: {{- include "memloop.containerSecurity" . | nindent 8 }}
      {{- with $trainer.existingSecret }}
      envFrom:
        - secretRef: { name: {{ . | quote }} }
      {{- end }}
      workingDir: /runs  # recipes name folders for checkpoints, trackers and logs relative to it; the image's own is read-only
      env:
        - { name: HOME, value: /tmp }
        {{- if .root.Values.caBundle.configMap }}
        {{- range list "SSL_CERT_FILE" "REQUESTS_CA_BUNDLE" "AWS_CA_BUNDLE" }}
        - { name: {{ . }}, value: {{ include "memloop.caFile" $.root }} }
        {{- end }}
        {{- end }}
        {{- if $trainer.runsClaim }}
        - { name: VERL_FILE_LOGGER_PATH, value: {{ include "memloop.runLog" $trainer }} }
        {{- end }}
        {{- range $name, $value := $trainer.env }}
        - { name: {{ $name }}, value: {{ $value | quote }} }
        {{- end }}
        {{- include "memloop.extra" .values.extraEnv | nindent 8 }}
      ports:
        - { name: gcs, containerPort: 6379 }
        - { name: dashboard, containerPort: 8265 }
      resources: {{- toYaml .resources | nindent 8 }}
      volumeMounts:
        - { name: runs, mountPath: /runs }
        - { name: shm, mountPath: /dev/shm }
        - { name: tmp, mountPath: /tmp }
        {{- include "memloop.caMount" .root | nindent 8 }}
        {{- include "memloop.extra" .values.extraVolumeMounts | nindent 8 }}
    {{- if .exporter }}
    - name: exporter
      image: {{ include "memloop.image" (dict "root" .root "image" (ternary .root.Values.images.trainerGpu .root.Values.images.trainer (gt (int $trainer.workers.gpus) 0))) }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      command: [python, -m, trainer.metrics_exporter, {{ include "memloop.runLog" $trainer }}, --port, "7805"]
      securityContext: {{- include "memloop.containerSecurity" . | nindent 8 }}
      ports:
        - { name: metrics, containerPort: 7805 }
      resources: {{- toYaml $trainer.exporterResources | nindent 8 }}
      volumeMounts:
        - { name: runs, mountPath: /runs, readOnly: true }
    {{- end }}
  volumes:
    {{- if $trainer.runsClaim }}
    - { name: runs, persistentVolumeClaim: { claimName: {{ $trainer.runsClaim | quote }} } }
    {{- else }}
    - { name: runs, emptyDir: {} }
    {{- end }}
    - { name: shm, emptyDir: { medium: Memory, sizeLimit: {{ $trainer.sharedMemory }} } }
    - { name: tmp, emptyDir: {} }
    {{- include "memloop.caVolume" .root | nindent 4 }}
    {{- include "memloop.extra" .values.extraVolumes | nindent 4 }}
{{- end }}
