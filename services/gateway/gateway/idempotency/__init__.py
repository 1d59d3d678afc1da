"""``Idempotency-Key``: a POST that changes state happens once, however often a client sends it."""

from gateway.idempotency.idempotency import KEY_HEADER as KEY_HEADER
from gateway.idempotency.idempotency import Attempt as Attempt
from gateway.idempotency.idempotency import Idempotency as Idempotency
from gateway.idempotency.idempotency import refuse_ignored_key as refuse_ignored_key
from gateway.idempotency.idempotency import refuse_key as refuse_key
from gateway.idempotency.idempotency import refuse_key_of_stream as refuse_key_of_stream
from gateway.idempotency.idempotency import subject_of_read as subject_of_read
from gateway.idempotency.idempotency import subject_of_response as subject_of_response
