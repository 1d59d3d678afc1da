"""Words that say little by themselves, and words that turn a statement round."""

from typing import Final

# fmt: off
FUNCTION_WORDS: Final = frozenset((
    "a", "an", "the", "this", "that", "these", "those", "of", "to", "in", "on", "at", "for", "from", "with", "as", "by",
    "and", "or", "but", "so", "than", "then", "also", "it", "its", "he", "she", "his", "her", "him", "they", "their",
    "them", "we", "our", "you", "your", "i", "my", "me", "is", "are", "was", "were", "be", "been", "being", "has",
    "have", "had", "do", "does", "did", "can", "could", "will", "would", "may", "might", "must", "shall", "should",
    "there", "here", "what", "who", "whom", "whose", "which", "where", "when", "why", "how", "many", "much", "tell",
    "about", "into", "not", "no", "never", "neither", "nor", "without", "cannot",
    "何", "誰", "谁", "哪", "里", "吗", "呢", "什", "么",
    "は", "が", "です", "でした", "である", "であった", "だった", "だ",
    "とする", "となる", "의", "은", "는", "이", "가", "이다", "입니다",
    "이며", "이고", "이었다", "였다",
    "으며", "다", "습니다", "하며", "하고", "한다", "합니다", "했다",
    "했으며", "했습니다", "되며", "되고", "된다", "됩니다",
    "됐다", "됐으며", "됐습니다",
))
"""Those of Japanese and Korean are words of their own only where ``words`` cuts them off."""
NEGATIONS: Final = frozenset((
    "not", "no", "never", "neither", "nor", "without", "cannot", "nicht", "kein", "keine", "keinen", "keiner", "nie",
    "niemals", "ne", "pas", "jamais", "aucun", "aucune", "non", "nessun", "nessuna", "nunca", "jamás", "ningún", "não",
    "не", "нет", "никогда", "不", "没", "沒", "未", "無", "无", "않", "안", "못", "ikke", "inte", "niet", "geen",
    "değil", "není", "nejsou", "ではな", "ではなく", "ではありません", "じゃな", "아니",
))
# fmt: on
_IS: Final = (
    "ist sind war waren beträgt betragen betrug lautet hat est sont était s'élève_à es son fue era tiene asciende_a è "
    "sono ammonta_a é são foi tem zijn heeft bedraagt bedroeg är var har uppgår_till er udgør utgjør jest są był była "
    "wynosi wynoszą wyniósł составляет составил составила составило был была было равен равна это je jsou má činí dir "
    "dır dur dür tir tır tur tür 是 为 為"
)
COPULAS: Final = frozenset(each.replace("_", " ") for each in _IS.split())
_BEFORE_VALUES: Final = (
    "der die das des dem den le la les l el los las il lo gli het det de di del della am em på op в number nummer "
    "numéro número numero numer номер"
)
_BEFORE_NAMES: Final = (
    "o os do da dos dello dei degli delle du von für för av af van voor pour para per dla для 的 有 の"
)
BEFORE_NAMES: Final = frozenset(_BEFORE_NAMES.split())
"""Little words that may be left out before a name, but not before a value: ``do`` is *until* in Polish."""
LIGHT: Final = COPULAS | BEFORE_NAMES | frozenset(_BEFORE_VALUES.split())
"""Words of a statement that a text may lack where nothing stands in their place: *Total: 5* says *The total is 5*."""
_BETWEEN: Final = "bis zu à contre a alle al tot tegen till til do до к às ile až 至 到 대 対 比 ~"
BETWEEN_VALUES: Final = frozenset(_BETWEEN.split())
"""What a text may write as a dash or a colon: 5 *bis* 7, 3 *zu* 1."""
VERBS: Final = COPULAS | frozenset((
    "is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "do", "does", "did", "can", "could",
    "will", "would", "may", "might", "must", "shall", "should", "は", "が", "を", "だ", "です", "でした", "である",
    "だった", "이다", "입니다",
))  # fmt: skip
