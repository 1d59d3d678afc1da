{{/* A disk: accessMode, storageClass, size. */}}
{{- define "memloop.claimSpec" -}}
accessModes: [{{ .accessMode }}]
{{- with .storageClass }}
storageClassName: {{ . }}
{{- end }}
resources: { requests: { storage: {{ .size }} } }
{{- end }}

{{/* One server with a disk: root, component, values (size, storageClass, resources), image, port, command, env, probe, mounts, volumes */}}
{{- define "memloop.database" -}}
{{ include "memloop.serviceAccount" (dict "root" .root "component" .component "values" (dict)) }}
---
apiVersion: v1
kind: Service
metadata: {{- include "memloop.metadata" . | nindent 2 }}
spec:
  selector: {{- include "memloop.selector" . | nindent 4 }}
  ports:
    - { name: {{ .component }}, port: {{ .port }}, targetPort: {{ .component }} }
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{- include "memloop.metadata" . | nindent 2 }}
spec:
  replicas: 1
  serviceName: {{ include "memloop.name" . }}
  persistentVolumeClaimRetentionPolicy: { whenDeleted: Retain, whenScaled: Retain }
  selector:
    matchLabels: {{- include "memloop.selector" . | nindent 6 }}
  template:
    metadata: {{- include "memloop.podMetadata" . | nindent 6 }}
    spec:
      {{- include "memloop.podSecurity" .root | nindent 6 }}
      serviceAccountName: {{ include "memloop.name" . }}
      terminationGracePeriodSeconds: 120  # what is in memory goes to the disk
      {{- include "memloop.placement" . | nindent 6 }}
      {{- include "memloop.initContainers" . | nindent 6 }}
      containers:
        - name: {{ .component }}
          image: {{ include "memloop.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          {{- with .command }}
          command: {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext: {{- include "memloop.containerSecurity" . | nindent 12 }}
          env:
            {{- .env | nindent 12 }}
            {{- include "memloop.extra" .values.extraEnv | nindent 12 }}
          ports:
            - { name: {{ .component }}, containerPort: {{ .port }} }
          startupProbe: {{- merge (dict "periodSeconds" 2 "timeoutSeconds" 3 "failureThreshold" 300) .ready | toYaml | nindent 12 }}
          readinessProbe: {{- merge (dict "periodSeconds" 5 "timeoutSeconds" 3) .ready | toYaml | nindent 12 }}
          livenessProbe: {{- merge (dict "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 6) .alive | toYaml | nindent 12 }}
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            {{- toYaml .mounts | nindent 12 }}
            {{- include "memloop.extra" .values.extraVolumeMounts | nindent 12 }}
      volumes:
        - { name: tmp, emptyDir: {} }
        {{- include "memloop.extra" .values.extraVolumes | nindent 8 }}
  volumeClaimTemplates:
    - metadata: { name: data }
      spec: {{- include "memloop.claimSpec" (dict "accessMode" "ReadWriteOnce" "storageClass" .values.storageClass "size" .values.size) | nindent 8 }}
{{- end }}
