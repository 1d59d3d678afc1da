"""Made-up secrets of the forms that services publish, built at run time: none stands in this file.

A line is a service and a form. ``<a32>`` is 32 random characters of an alphabet: ``a`` letters and digits, ``A``
capitals and digits, ``l`` small letters and digits, ``h`` hexadecimal, ``d`` digits, ``w`` letters, digits, ``-`` and
``_``, ``b`` base64; ``<u>`` is a UUID. What stands between ``«`` and ``»`` is the secret; without them, all of it is.
"""

import random
import re
import string
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_ALPHABETS: Final = {
    "a": string.ascii_letters + string.digits,
    "A": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "h": "0123456789abcdef",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
}
_SLOT: Final = re.compile(r"<([aAlhdwb])(\d+)>|<u>")
_PROSE: Final = ("Use {} for the staging bot.", "I pasted {}, sorry!", "the key ({}) works", "it={}", '"value": "{}"')
"""Where a form that needs no context stands: none of them says what it is."""

BY_FORM: Final = """
1Password service account | ops_eyJ<a400>
1Password secret key | A3-<A6>-<A6>-<A5>-<A5>-<A5>-<A5>
Adobe | p8e-<l32>
age | AGE-SECRET-KEY-1<A58>
Airtable | pat<a14>.<h64>
Aiven | AVNS_<a19>
Alibaba Cloud | LTAI<a20>
Amazon AWS | AKIA<A16>
Amazon AWS session | ASIA<A16>
Amazon Bedrock | ABSK<b110>
Amazon MWS | amzn.mws.<u>
Amazon OAuth | amzn1.oa2-cs.v1.<h64>
Anthropic | sk-ant-api03-<w93>AA
Anthropic admin | sk-ant-admin01-<w93>AA
Anthropic OAuth | sk-ant-oat01-<w93>AA
Apify | apify_api_<a36>
Artifactory | AKCp<a69>
Artifactory reference | cmVmd<a59>
Asana | 1/<d16>:<h32>
Asana personal | 2/<d16>/<d16>:<h32>
Atlassian | ATATT3<w180>=<A8>
Atlassian Bitbucket app password | ATBB<a32>
Atlassian connect | ATCTT3<w180>=<A8>
Azure AD | <a3>8Q~<a34>
Azure DevOps | <a76>AZDO<a4>
Azure Cosmos DB | <a76>ACDb<a6>==
Azure Functions | <a44>AzFu<a6>==
Azure Search | <a42>AzSe<a6>
Azure Container Registry | <a42>+ACR<a6>
Azure Storage | <a76>+ASt<a6>==
Bitbucket data center | BBDC-<b44>
Braintree | access_token$production$<l16>$<h32>
Brave Search | BSA<a27>
Brevo | xkeysib-<h64>-<a16>
Brevo SMTP | xsmtpsib-<h64>-<a16>
Browserbase | bb_live_<a27>
Buildkite | bkua_<h40>
Cal.com | cal_live_<h32>
Cerebras | csk-<l48>
CircleCI | CCIPAT_<a22>_<h40>
ClickHouse Cloud | 4b1d<a38>
Clojars | CLOJARS_<h60>
Cloudflare user token | cfut_<a40>
Cloudflare origin CA | v1.0-<h24>-<h146>
CockroachDB | CCDB1_<a22>_<a40>
Contentful | CFPAT-<w43>
Context7 | ctx7sk-<u>
crates.io | cio<a32>
Databricks | dapi<h32>
Databricks numbered | dapi<h32>-2
Datadog | ddapi_<a34>
Defined Networking | dnkey-<l26>-<l52>
DigitalOcean | dop_v1_<h64>
DigitalOcean OAuth | doo_v1_<h64>
DigitalOcean refresh | dor_v1_<h64>
Discord bot | MTA<a21>.<a6>.<w38>
Docker Hub | dckr_pat_<w27>
Docker Hub organisation | dckr_oat_<w32>
Doppler | dp.pt.<a43>
Doppler service | dp.st.dev.<a43>
Dropbox short | sl.<w138>
Duffel | duffel_live_<w43>
Dynatrace | dt0c01.<A24>.<A64>
Dynatrace platform | dt0s16.<A8>.<A64>
E2B | e2b_<h40>
EasyPost | EZAK<a54>
EasyPost test | EZTK<a54>
Facebook | EAAM<a120>
Facebook app | EAAC<a140>
Figma | figd_<w40>
Firecrawl | fc-<h32>
Firebase messaging | <w11>:APA91b<w134>
Fireworks | fw_<a24>
Flutterwave | FLWSECK_TEST-<h32>-X
Flutterwave live | FLWSECK-<h32>-X
Fly.io | fo1_<w43>
Fly.io macaroon | fm2_<b200>
Frame.io | fio-u-<w64>
GitHub | ghp_<a36>
GitHub app | ghs_<a36>
GitHub fine-grained | github_pat_<a22>_<a59>
GitHub OAuth | gho_<a36>
GitHub refresh | ghr_<a76>
GitHub user | ghu_<a36>
GitLab | glpat-<w20>
GitLab CI job | glcbt-64_<w20>
GitLab deploy | gldt-<w20>
GitLab feature flags | glffct-<w20>
GitLab feed | glft-<w20>
GitLab incoming mail | glimt-<l25>
GitLab Kubernetes agent | glagent-<w50>
GitLab OAuth | gloas-<h64>
GitLab runner | glrt-<w20>
GitLab runner registration | GR1348941<w20>
GitLab SCIM | glsoat-<w20>
GitLab trigger | glptt-<h40>
Google API | AIza<w35>
Google OAuth secret | GOCSPX-<w28>
Google OAuth access | ya29.<w120>
Google OAuth refresh | 1//0<w80>
Google AI Studio | AQ.<w50>
Grafana | glsa_<a32>_<h8>
Grafana Cloud | glc_<a40>
Groq | gsk_<a52>
Harness | pat.<a22>.<a24>.<a20>
HashiCorp Terraform | <a14>.atlasv1.<a67>
HashiCorp Vault | hvs.<w95>
HashiCorp Vault batch | hvb.<w140>
Heroku | HRKU-AA<w58>
Honeycomb | hcaik_<l58>
HubSpot | pat-na1-<u>
HubSpot CMS | ctr-na1-<u>
HubSpot content | ct-eu1-<u>
PASETO | v1.local.<w60>
Bitcoin segwit key | zprv<a107>
Bitcoin nested segwit key | yprv<a107>
Hugging Face | hf_<a34>
Hugging Face organisation | api_org_<a34>
Infracost | ico-<a32>
Inngest | signkey-prod-<h64>
Instagram | IGQV<w150>
Jina | jina_<a60>
LangFuse | sk-lf-<u>
LangSmith | lsv2_pt_<h32>_<h10>
LangSmith service | lsv2_sk_<h32>_<h10>
LaunchDarkly | api-<u>
LaunchDarkly SDK | sdk-<u>
Linear | lin_api_<a40>
Linear OAuth | lin_oauth_<h64>
Logfire | pylf_v1_us_<a43>
Mailchimp | <h32>-us12
MailerSend | mlsn.<h64>
Mailgun | key-<h32>
Mapbox | sk.eyJ<a60>.<w22>
MaxMind | <a6>_<a29>_mmk
mem0 | m0-<a40>
MongoDB Atlas | mdb_sa_sk_<w40>
Neon | napi_<l64>
Netlify | nfp_<a36>
New Relic user | NRAK-<A27>
New Relic insert | NRII-<w32>
New Relic browser | NRJS-<h19>
Notion | ntn_<d11><a35>
Notion old | secret_<a43>
npm | npm_<a36>
NuGet | oy2<l43>
NVIDIA | nvapi-<w64>
Octopus Deploy | API-<A26>
OpenAI | sk-<a20>T3BlbkFJ<a20>
OpenAI project | sk-proj-<w74>T3BlbkFJ<w74>
OpenAI service account | sk-svcacct-<w74>T3BlbkFJ<w74>
OpenRouter | sk-or-v1-<h64>
OpenShift | sha256~<w43>
PagerDuty | pdt_<a30>
Paddle | pdl_live_apikey_<l26>_<a22>_<a3>
Perplexity | pplx-<a48>
Pinecone | pcsk_<a6>_<a63>
PlanetScale | pscale_tkn_<w43>
PlanetScale OAuth | pscale_oauth_<w43>
PlanetScale password | pscale_pw_<w43>
Plane | plane_api_<h32>
PostHog | phc_<a43>
PostHog personal | phx_<a43>
Postman | PMAK-<h24>-<h34>
Prefect | pnu_<a36>
Pulumi | pul-<h40>
PyPI | pypi-AgEIcHlwaS5vcmc<w80>
Razorpay | rzp_live_<a14>
ReadMe | rdme_<l70>
Render | rnd_<a32>
Replicate | r8_<a37>
Resend | re_<a8>_<a24>
RubyGems | rubygems_<h48>
RunPod | rpa_<A46>
Salesforce | 00D<a12>!<a100>
Scaleway | SCW<A17>
Scalingo | tk-us-<w48>
SendGrid | SG.<w22>.<w43>
Sentry user | sntryu_<h64>
Sentry organisation | sntrys_eyJ<a120>_<a43>
SettleMint | sm_pat_<a16>
Shippo | shippo_live_<h40>
Shopify | shpat_<h32>
Shopify custom | shpca_<h32>
Shopify private | shppa_<h32>
Shopify shared | shpss_<h32>
Slack bot | xoxb-<d12>-<d13>-<a24>
Slack user | xoxp-<d12>-<d12>-<d12>-<h32>
Slack app | xapp-1-A<A10>-<d13>-<h64>
Slack config | xoxe.xoxp-1-<A163>
Slack refresh | xoxe-1-<A146>
Slack webhook | https://hooks.slack.com/services/«T<A8>/B<A10>/<a24>»
Discord webhook | https://discord.com/api/webhooks/«<d18>/<w68>»
Teams webhook | https://«acme.webhook.office.com/webhookb2/<u>@<u>/IncomingWebhook/<h32>/<u>»
Snyk | snyk_uat.<h8>.<w64>
SonarQube | squ_<h40>
SonarQube project | sqp_<h40>
Sourcegraph | sgp_<h16>_<h40>
Square | sq0atp-<w22>
Square secret | sq0csp-<w43>
Square new | EAAA<w60>
Stripe | sk_live_<a24>
Stripe long | sk_live_51<a97>
Stripe restricted | rk_live_<a24>
Stripe test | sk_test_<a24>
Stripe webhook | whsec_<a32>
Supabase | sbp_<h40>
Supabase secret | sb_secret_<w31>
Tailscale | tskey-auth-<a17>-<a32>
Tavily | tvly-<a32>
Tavily dev | tvly-dev-<a32>
Telegram | <d10>:AA<w33>
Together | tgp_v1_<w43>
Trello | ATTA<h64>
Trigger.dev | tr_dev_<a20>
Twilio | SK<h32>
Twitter bearer | AAAAAAAAAAAAAAAAAAAAAA<a90>
Typeform | tfp_<w43>
Unkey | unkey_<a24>
Vercel | vcp_<a56>
Voyage | pa-<w43>
Weights and Biases | wandb_v1_<a40>
WooCommerce | ck_<h40>
xAI | xai-<a80>
Zapier-like unknown | acme_live_<a32>
Unknown pat | acme_pat_<a32>
JSON web token | eyJ<a36>.eyJ<a60>.<w43>
Bitcoin extended key | xprv<a107>
Apache htpasswd | $apr1$<a8>$<a22>
bcrypt | $2y$10$<a53>
Argon2 | $argon2id$v=19$m=65536,t=3,p=4$<a22>$<a43>
Linux shadow | $6$<a16>$<a86>
Django hash | pbkdf2_sha256$260000$<a22>$<a43>=
LDAP hash | {SSHA}<b48>
PEM in base64 | LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t<b400>
PEM in one line | -----BEGIN PRIVATE KEY-----\\n<b64>\\n<b64>\\n-----END PRIVATE KEY-----
"""

IN_CONTEXT: Final = """
assignment | MY_SERVICE_KEY=«<a32>»
export | export GITHUB_TOKEN=«<h40>»
quoted export | export SECRET="«<w40>»"
Postgres environment | PGPASSWORD=«<a12>» psql -h db
MySQL environment | MYSQL_ROOT_PASSWORD: «<a14>»
MYSQL_PWD | MYSQL_PWD=«<a10>» mysql
Redis CLI environment | REDISCLI_AUTH=«<a20>»
Datadog environment | DD_API_KEY=«<h32>»
Datadog application | DD_APP_KEY=«<h40>»
Algolia | ALGOLIA_ADMIN_KEY=«<h32>»
Cohere | CO_API_KEY=«<a40>»
Mistral | MISTRAL_API_KEY="«<a32>»"
DeepL | DEEPL_AUTH_KEY=«<u>:fx»
ElevenLabs | ELEVENLABS_API_KEY=«<h32>»
AssemblyAI | ASSEMBLYAI_API_KEY=«<h32>»
Cloudflare global | CLOUDFLARE_API_KEY=«<h37>»
Heroku UUID | HEROKU_API_KEY=«<u>»
Okta | OKTA_API_TOKEN=«00<w40>»
Twilio auth | TWILIO_AUTH_TOKEN=«<h32>»
Fastly | fastly_api_token: «<w32>»
Snyk UUID | SNYK_TOKEN=«<u>»
Travis | travis_token: "«<a22>»"
AWS secret | aws_secret_access_key = «<b40>»
AWS in JSON | "SecretAccessKey": "«<b40>»"
AWS session | aws_session_token=«IQoJ<b200>»
Azure connection | DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=«<b86>==»;EndpointSuffix=core.windows.net
Azure Service Bus | Endpoint=sb://acme/;SharedAccessKeyName=Root;SharedAccessKey=«<b43>=»
Azure SAS | https://acme.blob.core.windows.net/c?sv=2022-11-02&sr=c&sig=«<a40>%3D»
JSON key | {"api_key": "«<a32>»"}
JSON camel | {"apiKey": "«<a32>»", "n": 1}
JSON in JSON | "{\\"clientSecret\\": \\"«<a32>»\\"}"
JSON password | "password": "«<a12>»",
YAML token | auth_token: «<a32>»
YAML password | db_password: «<a9>!»
Python assignment | SECRET_KEY = "django-insecure-«<a50>»"
Ruby hash | :access_token => "«<a32>»"
Go | ClientSecret := "«<a32>»"
Properties | spring.datasource.password=«<a12>»
TypeScript | const accessToken = '«<a32>»';
INI | auth_pass = «<a12>»
npmrc | //registry.npmjs.org/:_authToken=«<u>»
npmrc old | _auth=«<a44>=»
pip | [global]\\nextra-index-url = https://__token__:«<a32>»@pypi.acme.example/simple
Maven | <password>«<a14>»</password>
.NET settings | <add key="ApiKey" value="«<a32>»" />
ODBC | Server=db;Uid=app;Pwd=«<a12>»;
JDBC | jdbc:postgresql://db/x?user=app&password=«<a14>»
Postgres URL | postgresql://app:«<a16>»@db.acme.example:5432/x
MongoDB URL | mongodb+srv://app:«<a16>»@cluster0.acme.example/x
Redis URL | redis://:«<a24>»@cache:6379/0
AMQP URL | amqp://app:«<a16>»@mq/%2f
git with token | git clone https://oauth2:«<a32>»@gitlab.example/x.git
git with only a token | https://«<a40>»@github.com/acme/x.git
password with an at sign | ftp://app:«<a6>@<a6>»@host/x
curl user | curl -u «bob:<a12>» https://acme.example
curl user long | curl --user 'bob:«<a12>»' https://acme.example
curl proxy | curl -x proxy:3128 --proxy-user «bob:<a12>» https://acme.example
curl cookie | curl -b "session=«<a32>»" https://acme.example
httpie | http -a bob:«<a12>» GET acme.example
wget | wget --http-user=bob --http-password=«<a12>» https://acme.example
mysql | mysql -u root -p«<a12>» shop
mysqldump | mysqldump -uroot -p'«<a12>» ' shop
sshpass | sshpass -p «<a12>» ssh bob@acme.example
docker login | docker login -u bob -p «<a20>» registry.example
redis-cli | redis-cli -h cache -a «<a20>» ping
ldapsearch | ldapsearch -D cn=admin -w «<a12>» -b dc=x
mosquitto | mosquitto_pub -h mq -u bob -P «<a12>» -t x
smbclient | smbclient //nas/x -U bob%«<a12>»
sqlplus | sqlplus scott/«<a8>»@orcl
option | ./deploy --password «<a12>» --force
option with equals | vault login --token=«<a26>»
option api key | acme --api-key «<a32>» list
openssl | openssl rsa -in k.pem -passin pass:«<a12>»
htpasswd command | htpasswd -b .htpasswd bob «<a12>»
SQL | CREATE USER app IDENTIFIED BY '«<a12>»';
SQL Postgres | ALTER ROLE app WITH LOGIN PASSWORD '«<a12>»';
netrc | machine api.acme.example login bob password «<a14>»
netrc lines | machine acme.example\\n  login bob\\n  password «<a14>»
pgpass | db.acme.example:5432:shop:app:«<a14>»
htpasswd file | bob:«$apr1$<a8>$<a22>»
docker config | {"auths": {"registry.example": {"auth": "«<a40>==»"}}}
docker identity | "identitytoken": "«<w60>»"
kubeconfig key | client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ<b300>»
kubeconfig token | users:\\n- user:\\n    token: «<a60>»
cookie | Cookie: theme=dark; session=«<a32>»
cookie in JSON | "cookie": "sid=«<a32>»"
set-cookie | Set-Cookie: sessionid=«<l32>»; Path=/; HttpOnly
PHP session | PHPSESSID=«<l26>»
Express session | connect.sid=«s%3A<a32>.<a43>»
Basic | Authorization: Basic «<a24>=»
Bearer | Authorization: Bearer «<w40>»
Token | Authorization: Token «<h40>»
Bare | Authorization: «<a40>»
ApiKey | Authorization: ApiKey «<a60>==»
Digest | Authorization: Digest username="bob", realm="x", nonce="<h32>", response="«<h32>»"
AWS v4 | Authorization: AWS4-HMAC-SHA256 Credential=«<A20>/20260101/eu/s3/aws4_request, Signature=<h64>»
Hawk | Authorization: Hawk id="<a12>", ts="1353832234", mac="«<b43>=»"
OAuth 1 | Authorization: OAuth oauth_consumer_key="<a25>", oauth_signature="«<a28>%3D»"
SharedKey | Authorization: SharedKey acme:«<b43>=»
GenieKey | Authorization: GenieKey «<u>»
Splunk | Authorization: Splunk «<u>»
Proxy | Proxy-Authorization: Basic «<a24>=»
header | X-Api-Key: «<a32>»
header in curl | curl -H 'X-Auth-Token: «<h32>»' https://acme.example
Azure header | Ocp-Apim-Subscription-Key: «<h32>»
GitLab header | PRIVATE-TOKEN: «<a20>»
query | https://api.acme.example/v1?api_key=«<a32>»&page=2
query access token | https://acme.example/cb#access_token=«<a60>»
presigned | https://s3.example/x?X-Amz-Expires=60&X-Amz-Signature=«<h64>»
JWK | {"kty": "EC", "d": "«<w43>»"}
prose password | My wifi password is «<a12>».
prose key | my api key is «<a32>»
Kafka | sasl.jaas.config=x required username="app" password="«<a14>»";
Rails | secret_key_base: «<h128>»
Laravel | APP_KEY=base64:«<b43>=»
Consul | CONSUL_HTTP_TOKEN=«<u>»
WordPress | define('AUTH_KEY', '«<a64>»');
"""


@dataclass(frozen=True)
class Format:
    """A service's form, a text with a secret of it, and the secret."""

    name: str
    text: str
    value: str


def made(form: str, dice: random.Random) -> str:
    """A form with its slots filled."""

    def filled(slot: re.Match[str]) -> str:
        if slot[0] == "<u>":
            return str(uuid.UUID(int=dice.getrandbits(128), version=4))
        kind, count = slot[1], int(slot[2])
        value = "".join(dice.choices(_ALPHABETS[kind], k=count))
        return value if count < 8 or kind == "d" else f"{value[:3]}7{value[4:]}"  # a digit, as nearly all of them have

    return _SLOT.sub(filled, form.replace("\\n", "\n") if "BEGIN" not in form else form.replace("\\\\n", "\\n"))


def _parsed(table: str) -> list[tuple[str, str]]:
    return [(name, form) for name, _, form in (line.partition(" | ") for line in table.strip().splitlines())]


FORMS: Final = (*_parsed(BY_FORM), *_parsed(IN_CONTEXT))


def formats(seed: int = 20261127) -> Iterator[Format]:
    """Every form once; one that needs no context stands in five kinds of text in turn."""
    dice = random.Random(seed)
    alone = len(_parsed(BY_FORM))
    for place, (name, form) in enumerate(FORMS):
        text = made(form, dice)
        secret = re.search("«(.*)»", text, re.DOTALL)
        value = secret[1] if secret else text
        frame = _PROSE[(place + seed) % len(_PROSE)] if place < alone else "{}"
        yield Format(name, frame.replace("{}", text.replace("«", "").replace("»", "")), value)
