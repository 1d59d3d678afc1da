"""The names of transformers that we use, for pyright alone.

transformers' own ``__init__`` imports its four hundred models for type checkers: 13 seconds and a gigabyte in each run.
A name that is missing here is added with the module that defines it.
"""

from transformers.modeling_utils import PreTrainedModel as PreTrainedModel
from transformers.models.auto.modeling_auto import AutoModelForCausalLM as AutoModelForCausalLM
from transformers.models.auto.tokenization_auto import AutoTokenizer as AutoTokenizer
from transformers.tokenization_utils_base import PreTrainedTokenizerBase as PreTrainedTokenizerBase
