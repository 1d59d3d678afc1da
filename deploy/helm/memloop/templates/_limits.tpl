{{/* Limits as settings, in JSON. Whole numbers become text here: as a template's number, a large one has an exponent. */}}
{{- define "memloop.limits" -}}
{{- $limits := .Values.limits -}}
{{- dict
      "MEMLOOP_MAX_BODY_BYTES" (int64 $limits.maxBodyBytes | toString)
      "MEMLOOP_MAX_JSON_BYTES" (int64 $limits.maxJsonBytes | toString)
      "MEMLOOP_MAX_ACTIVE_BYTES" (int64 $limits.maxActiveBytes | toString)
      "MEMLOOP_MAX_ACTIVE_REQUESTS" (int64 $limits.maxActiveRequests | toString)
      "MEMLOOP_MAX_BATCH_REQUESTS" (int64 $limits.maxBatchRequests | toString)
      "MEMLOOP_TENANT_SHARE" (toString $limits.tenantShare)
      "MEMLOOP_MAX_FOLLOWERS" (int64 $limits.maxFollowers | toString)
      "MEMLOOP_TENANT_FOLLOWERS" (int64 $limits.tenantFollowers | toString)
      "MEMLOOP_REQUESTS_PER_MINUTE" (int64 $limits.requestsPerMinute | toString)
      "MEMLOOP_TOKENS_PER_MINUTE" (int64 $limits.tokensPerMinute | toString)
      "MEMLOOP_HEAD_TIMEOUT_S" (int64 $limits.headTimeoutSeconds | toString)
      "MEMLOOP_MAX_CONNECTIONS" (int64 $limits.maxConnections | toString)
      "MEMLOOP_BODY_TIMEOUT_S" (int64 $limits.bodyTimeoutSeconds | toString)
      "MEMLOOP_BODY_BYTES_PER_S" (int64 $limits.bodyBytesPerSecond | toString)
      "MEMLOOP_WRITE_TIMEOUT_S" (int64 $limits.writeTimeoutSeconds | toString)
      "MEMLOOP_MAX_DOCUMENT_CHARS" (int64 $limits.maxDocumentChars | toString)
      "MEMLOOP_MAX_FILE_BYTES" (int64 $limits.maxFileBytes | toString)
      "MEMLOOP_TENANT_STORAGE_BYTES" (int64 $limits.tenantStorageBytes | toString)
      "MEMLOOP_TENANT_FILES" (int64 $limits.tenantFiles | toString)
      "MEMLOOP_LONG_CONTEXT_MAX_CALLS" (int64 $limits.longContextMaxCalls | toString)
      "MEMLOOP_LONG_CONTEXT_DEADLINE_S" (int64 $limits.longContextSeconds | toString)
      "MEMLOOP_RECALL_TIMEOUT_S" (toString $limits.recallTimeoutSeconds)
      "MEMLOOP_ENQUEUE_TIMEOUT_S" (toString $limits.enqueueTimeoutSeconds)
      "MEMLOOP_ENGINE_READ_TIMEOUT_S" (int64 $limits.engineReadSeconds | toString)
      "MEMLOOP_ENGINE_TOTAL_TIMEOUT_S" (int64 $limits.engineTotalSeconds | toString)
      "MEMLOOP_REDIS_FULL_SHARE" (toString $limits.redisFullShare)
      "MEMLOOP_TENANT_QUEUE_SHARE" (toString $limits.tenantQueueShare)
      "MEMLOOP_TENANT_WEIGHTS" (toString $limits.tenantWeights)
      | toJson -}}
{{- end }}
